package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/randtest"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// dependent lists the columns that the ledger depends on, by table. If a table is not listed, the
// ledger depends on all its columns.
var dependent = map[string][]string{
	"platform_user": {"id", "user_id"},
}

func TestVerify_DetectsEveryRandomTampering(t *testing.T) {
	r := randtest.New(t)
	rounds := randtest.Count(60, 1_000)
	for ledger := range randtest.Count(1, 4) {
		w := newWorld(t, "alice", "bob", "carol", "dave")
		w.random(r, 200)
		if full := w.verifyAll(); !full.OK {
			t.Fatalf("ledger %d before the tampering: got failures %+v, want none", ledger, full.Failures)
		}
		for _, u := range w.users {
			if r := w.verify(u, ""); !r.OK {
				t.Fatalf("ledger %d before the tampering: got failures of %s %+v, want none", ledger, u, r.Failures)
			}
		}
		w.loosen()
		s := w.save()
		for round := range rounds {
			table, what := w.tamper(r, s)
			full := w.verifyAll()
			if full.OK || full.Status == audit.OK {
				t.Fatalf("ledger %d, round %d, after %s of %s: got status %s, want failed", ledger, round, what, table, full.Status)
			}
			s.restore(w, table)
		}
		if full := w.verifyAll(); !full.OK {
			t.Fatalf("after the restore: got failures %+v, want none", full.Failures)
		}
	}
}

// tamper makes one random change and describes it.
func (w *world) tamper(r *rand.Rand, s saved) (table, what string) {
	w.Helper()
	for {
		table = []string{"wallet_entry", "wallet_entry", "wallet_transaction", "wallet_account", "trade", "fee_rule_set", "platform_user"}[r.IntN(7)]
		rows, what := w.tampered(r, table, s[table])
		if what == "" {
			continue
		}
		err := saved{table: rows}.write(w, table)
		if err == nil {
			return table, what
		} // otherwise the value has the wrong type for the column
	}
}

// tampered returns the rows of a table with one random change. what is "" if the ledger
// does not depend on the change.
func (w *world) tampered(r *rand.Rand, table string, before [][]any) (rows [][]any, what string) {
	names := w.columns(table)
	for _, row := range before {
		rows = append(rows, slices.Clone(row))
	}
	at := r.IntN(len(rows))
	which := fmt.Sprint(before[at][:3])
	switch r.IntN(10) {
	case 0:
		return slices.Delete(rows, at, at+1), "row " + which + " deleted"
	case 1:
		again := slices.Clone(rows[at])
		k := w.changed(r, table, names, again, rows)
		if k == 0 && table == "platform_user" {
			return nil, "" // the ledger does not depend on an additional user
		}
		return append(rows, again), fmt.Sprintf("row %s copied, with %v as %s", which, again[k], names[k])
	case 2:
		return append(rows, rows[at]), "row " + which + " copied"
	case 3:
		other := r.IntN(len(rows))
		k := w.pick(r, table, names)
		if fmt.Sprint(rows[at][k]) == fmt.Sprint(rows[other][k]) {
			return nil, ""
		}
		rows[at][k], rows[other][k] = rows[other][k], rows[at][k]
		return rows, fmt.Sprintf("%s of %s and %v swapped", names[k], which, before[other][:3])
	default:
		k := w.changed(r, table, names, rows[at], rows)
		return rows, fmt.Sprintf("%s of %s: %v instead of %v", names[k], which, rows[at][k], before[at][k])
	}
}

func (w *world) columns(table string) []string {
	w.Helper()
	rows, err := w.raw.QueryContext(context.Background(), `SELECT * FROM `+table+` LIMIT 0`)
	w.must(err)
	defer rows.Close()
	names, err := rows.Columns()
	w.must(err)
	w.must(rows.Err())
	return names
}

// pick returns a random column that the ledger depends on.
func (w *world) pick(r *rand.Rand, table string, names []string) int {
	some := dependent[table]
	if some == nil {
		return r.IntN(len(names))
	}
	return slices.Index(names, some[r.IntN(len(some))])
}

// changed changes a column of a row and returns its name.
func (w *world) changed(r *rand.Rand, table string, names []string, row []any, rows [][]any) int {
	for {
		k := w.pick(r, table, names)
		v := other(r, row[k], rows[r.IntN(len(rows))][k])
		if fmt.Sprint(v) != fmt.Sprint(row[k]) {
			row[k] = v
			return k
		}
	}
}

// other returns a different value of the same type, or nil.
func other(r *rand.Rand, v, anothers any) any {
	if r.IntN(12) == 0 {
		return nil
	}
	if r.IntN(3) == 0 {
		return anothers
	}
	switch v := v.(type) {
	case int64:
		return []int64{v + 1, v - 1, -v, 0, v + 1_000_000, v * 2, r.Int64(), -r.Int64()}[r.IntN(8)]
	case string:
		return []string{v + "x", "", strings.ToUpper(v), strings.TrimSuffix(v, v[max(len(v)-1, 0):]), v + " ", "x" + v}[r.IntN(6)]
	case []byte:
		flipped := bytes.Clone(v)
		flipped[r.IntN(len(v))] ^= 1 << r.IntN(8)
		return [][]byte{flipped, {}, v[:len(v)-1], append(bytes.Clone(v), 0), make([]byte, len(v))}[r.IntN(5)]
	default:
		return "x"
	}
}

// TestVerify_RaisesNoFalseAlarmDuringPostings verifies the ledger while workers post.
func TestVerify_RaisesNoFalseAlarmDuringPostings(t *testing.T) {
	seed := randtest.Seed(t)
	w := newWorld(t, "alice", "bob")
	w.now, w.clock = time.Now(), time.Now // a clock that ticks per posting would be an hour ahead after 180 verifications
	w.deposit(in("alice", "USD"), 1_000_000)
	w.deposit(in("bob", "USD"), 1_000_000)
	verifications := randtest.Count(20, 1_000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// turns limits the postings per verification, because each verification reads all postings.
	turns := make(chan struct{}, randtest.Count(20, 4))
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() { w.keepPosting(ctx, rand.New(rand.NewPCG(seed, uint64(n))), turns) })
	}
	for n := range verifications {
		for range cap(turns) - len(turns) {
			turns <- struct{}{}
		}
		full := w.verifyAll()
		r := w.verify([]string{"alice", "bob"}[n%2], "")
		if !full.OK || !r.OK {
			t.Errorf("verification %d: got failures %+v, of the user %+v, want none", n, full.Failures, r.Failures)
			break
		}
		w.keep(w.checkpoint())
	}
	cancel()
	wg.Wait()
	if n := w.count("wallet_transaction"); n < 5 {
		t.Errorf("got %d transactions during the verifications, want at least 5", n)
	}
}

// TestVerify_GivesNoWarningForConcurrentPostings posts with many workers. A transaction
// records its start time. On PostgreSQL transactions wait for each other after their
// start, so entries can commit in another order than their times.
func TestVerify_GivesNoWarningForConcurrentPostings(t *testing.T) {
	seed := randtest.Seed(t)
	w := newWorld(t, "alice", "bob")
	w.clock = time.Now
	give := func(tx *db.Tx) (*wallet.Posted, error) {
		return w.ledger.Deposit(tx, in("alice", "USD"), 1_000_000, wallet.Request{})
	}
	w.post(give)
	if w.at.Engine == dbtest.PostgreSQL { // one case that does not depend on timing
		w.must(w.store.InTx(t.Context(), func(tx *db.Tx) error {
			w.post(give)
			_, err := give(tx)
			return err
		}))
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			for k := range int64(randtest.Count(15, 300)) {
				if err := w.store.InTx(t.Context(), postsAnything(w, w.users[r.IntN(2)], 1000*int64(n)+k, r.Int64())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var swapped int
	w.must(w.raw.QueryRowContext(t.Context(), `SELECT count(*) FROM wallet_entry e JOIN wallet_entry p
		ON p.user_id = e.user_id AND p.currency = e.currency AND p.number = e.number - 1 WHERE e.at < p.at`).Scan(&swapped))
	t.Logf("%d of %d entries are earlier than the previous one", swapped, w.count("wallet_entry"))
	if w.at.Engine == dbtest.PostgreSQL && swapped == 0 {
		t.Error("got no entry that is earlier than the previous one, want at least one: otherwise the test checks nothing")
	}
	if full, r := w.verifyAll(), w.verify("alice", ""); !full.OK || !r.OK || len(full.Warnings)+len(r.Warnings) > 0 {
		t.Errorf("ledger and wallet of alice: got failures %+v and %+v, warnings %+v and %+v, want none", full.Failures, r.Failures, full.Warnings, r.Warnings)
	}
}

// keepPosting posts once per value of turns until ctx ends.
func (w *world) keepPosting(ctx context.Context, r *rand.Rand, turns <-chan struct{}) {
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-turns:
		}
		user := []string{"alice", "bob"}[r.IntN(2)]
		_ = w.store.InTx(ctx, postsAnything(w, user, n, r.Int64()))
	}
}

// postsAnything posts a deposit that is immediately reversed, a withdrawal, or both.
func postsAnything(w *world, user string, n, random int64) func(*db.Tx) error {
	return func(tx *db.Tx) error {
		key := wallet.Request{Scope: "scope " + user, Key: fmt.Sprint(n, " ", random)}
		p, err := w.ledger.Deposit(tx, in(user, "USD"), 1+n%100, key)
		if err != nil || random%3 == 0 {
			return err
		}
		if random%3 == 1 {
			_, err = w.ledger.ReverseTransaction(tx, user, p.Transaction.ID, wallet.Request{})
			return err
		}
		_, err = w.ledger.Withdraw(tx, in(user, "USD"), 1+n%100, wallet.Request{})
		return err
	}
}
