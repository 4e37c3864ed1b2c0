package audit

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/wallet"
)

// Auditor verifies the ledger. It is safe for concurrent use.
type Auditor struct {
	Keys *wallet.Ring
	// Read takes a snapshot of the ledger and calls use once with it.
	Read func(ctx context.Context, use func(*Snapshot) error) error
	// Stored opens the newest checkpoint stored outside the database. Stored may be nil. It
	// returns a nil reader if there is no checkpoint.
	Stored func() (io.ReadCloser, error)
	// Scopes returns the idempotency scopes of requests about a user. It may be nil.
	Scopes func(user string) []string
	Now    func() time.Time
}

// Progress is the progress of a full verification.
type Progress struct{ Done, Total int64 } // rows

// VerifyUser verifies the accounts of one user, and all transactions and trades that
// involve the user. It compares the accounts with the newest stored checkpoint and with
// checkpoint, which comes from an earlier Report and may be empty. The error is a
// fault.NotFound if no row names the user, and a fault.Invalid if the checkpoint does not
// belong to this user and ledger. Findings are in the report and never cause an error.
func (a *Auditor) VerifyUser(ctx context.Context, user, checkpoint string) (*Report, error) {
	anchor, err := a.anchorOf(user, checkpoint)
	if err != nil {
		return nil, err
	}
	defer anchor.close()
	v := a.newAudit(user)
	if err := v.read(ctx, func() error { return v.verify(anchor) }); err != nil {
		return nil, err
	}
	return v.report(), nil
}

// VerifyAll verifies the whole ledger. It calls progress regularly; progress may be nil.
func (a *Auditor) VerifyAll(ctx context.Context, progress func(Progress)) (*FullReport, error) {
	v := a.newAudit("")
	v.onProgress = progress
	return a.all(ctx, v)
}

// Marks verifies the whole ledger and passes the mark of each account to add, in the order
// of a checkpoint. The caller must discard the marks unless the report is ok, because add
// runs before the result is known. Marks returns the error of add.
func (a *Auditor) Marks(ctx context.Context, add func(wallet.Mark) error) (*FullReport, error) {
	v := a.newAudit("")
	var failed error
	v.add = func(m wallet.Mark) {
		if failed == nil {
			failed = add(m)
		}
	}
	r, err := a.all(ctx, v)
	if err == nil && r.OK {
		err = failed
	}
	return r, err
}

func (a *Auditor) all(ctx context.Context, v *audit) (*FullReport, error) {
	anchor, err := a.anchorOf("", "")
	if err != nil {
		return nil, err
	}
	defer anchor.close()
	if err := v.read(ctx, func() error { return v.verify(anchor) }); err != nil {
		return nil, err
	}
	return v.fullReport(a.Now()), nil
}

// read takes a snapshot and runs examine on it. It checks the schema first. A changed
// schema may make the rest unreadable: PostgreSQL refuses to read rows that row security
// would hide. The remaining checks are then skipped.
func (v *audit) read(ctx context.Context, examine func() error) error {
	return v.Read(ctx, func(r *Snapshot) (err error) {
		v.records = r
		if err := v.schema(); err != nil {
			return err
		}
		if v.noted, err = r.Keys(); err == nil {
			err = examine()
		}
		if _, refused := errors.AsType[*fault.Error](err); err == nil || refused || v.failures[schemaGuard] == 0 || ctx.Err() != nil {
			return err
		}
		for c := range checks {
			if v.failures[c] == 0 {
				v.skip(c, "the ledger is unreadable because its schema was changed")
			}
		}
		return nil
	})
}

// schema compares the ledger's tables with the migrations.
func (v *audit) schema() error {
	compared, changes, err := v.records.Schema()
	if err != nil {
		return err
	}
	for _, c := range changes {
		v.fail(schemaGuard, Finding{Expected: c.Expected, Actual: c.Actual, Message: "The schema differs from the migrations: " + c.Object + "."})
	}
	v.examined[schemaGuard] = int64(compared)
	return nil
}

// Maximum number of rows per read: page for rows selected by key, ahead for consecutive
// rows.
const (
	page  = 1000
	ahead = 2000
)

// audit is one verification.
type audit struct {
	tally
	*Auditor
	records    *Snapshot
	sealer     *wallet.Sealer
	noted      []wallet.KeyMark // keys stored in wallet_key
	at         time.Time
	only       string // the verified user; empty: everything
	scope      scope  // rows that concern the user
	accounts   []Account
	marks      []wallet.Mark // ends of the user's chains
	entries    int64         // rows read as part of their chains
	heads      int64
	payments   int64 // number of transactions
	versions   int64 // number of versions of the fee rules
	progress   Progress
	onProgress func(Progress)
	add        func(wallet.Mark)  // receives the marks for a checkpoint; may be nil
	suspected  map[int64]*suspect // by transaction id
}

func (a *Auditor) newAudit(of string) *audit {
	v := &audit{Auditor: a, sealer: a.Keys.Sealer(), at: a.Now().UTC().Truncate(time.Microsecond), only: of, suspected: map[int64]*suspect{}}
	if of == "" {
		return v
	}
	v.scope.names = append([]string{of}, wallet.ShardNames(of)...)
	if a.Scopes != nil {
		for _, name := range v.scope.names {
			v.scope.requests = append(v.scope.requests, a.Scopes(name)...)
		}
	}
	return v
}

// verify verifies everything, or everything that concerns the user. It verifies the rows
// of accounts, entries, transactions, trades and fee rules, and then the relations between
// them.
func (v *audit) verify(anchor *anchor) error {
	n, err := v.chains()
	if err != nil {
		return err
	}
	if err := (&transactions{audit: v}).verify(); err != nil {
		return err
	}
	rules := &feeRules{audit: v, oldest: math.MaxInt64}
	sold := &trades{audit: v, rules: rules}
	if err := sold.verify(n.Trades); err != nil {
		return err
	}
	if err := v.relations(); err != nil {
		return err
	}
	if v.only == "" {
		v.notes()
	}
	if v.only == "" || v.examined[feeCrosscheck] > 0 {
		if err := rules.chain(); err != nil {
			return err
		}
	}
	if v.only == "" {
		v.counted(feeCrosscheck, v.versions, n.Rules, "Fee rules without a version, or with a duplicate version, exist.")
	}
	if err := v.place(); err != nil {
		return err
	}
	marked, err := (&anchors{audit: v}).verify(anchor)
	if err != nil {
		return err
	}
	return v.exists(sold.own > 0 || marked)
}

// chains verifies the accounts. For a house user it verifies all shards and reports them
// as one account. It returns the number of stored rows.
func (v *audit) chains() (n Count, err error) {
	if v.only == "" {
		if n, err = v.records.Count(""); err != nil {
			return n, err
		}
		v.progress.Total = n.Entries + n.Transactions + n.Trades
		return n, (&chains{audit: v}).verify(n)
	}
	for _, name := range v.scope.names {
		its, err := v.records.Count(name)
		if err != nil {
			return n, err
		}
		n.Accounts, n.Entries = n.Accounts+its.Accounts, n.Entries+its.Entries
		if err := (&chains{audit: v, of: name}).verify(n); err != nil {
			return n, err
		}
	}
	if len(v.scope.names) > 1 {
		v.accounts, v.marks = sumByCurrency(v.accounts), nil
	}
	return n, nil
}

// counted fails a check if the number of examined rows differs from the number of stored
// rows.
func (v *audit) counted(c check, seen, there int64, message string) {
	if seen != there {
		v.fail(c, Finding{UserID: v.only, Expected: integer(seen), Actual: integer(there), Message: message})
	}
}

// sumByCurrency adds up the accounts of each currency. It clears the head hash, which differs per
// shard.
func sumByCurrency(shards []Account) (out []Account) {
	for _, s := range shards {
		s.HeadHash = ""
		i := slices.IndexFunc(out, func(a Account) bool { return a.Currency == s.Currency })
		if i < 0 {
			out = append(out, s)
			continue
		}
		a := &out[i]
		a.Entries, a.LastSeq = a.Entries+s.Entries, a.LastSeq+s.LastSeq
		a.ComputedBalance, a.ComputedHeld = a.ComputedBalance+s.ComputedBalance, a.ComputedHeld+s.ComputedHeld
		a.CachedBalance, a.CachedHeld = addOptional(a.CachedBalance, s.CachedBalance), addOptional(a.CachedHeld, s.CachedHeld)
	}
	slices.SortFunc(out, func(a, b Account) int { return strings.Compare(string(a.Currency), string(b.Currency)) })
	return out
}

// addOptional returns the sum of two values, or nil if one of them is nil.
func addOptional(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// exists checks that the user has an account if trades, transactions or a checkpoint name
// the user. named states whether trades or a checkpoint do. The error is a fault.NotFound
// if no row names the user.
func (v *audit) exists(named bool) error {
	switch {
	case v.heads > 0 || v.entries > 0:
		v.pass(walletExists)
	case v.only == "":
	case named || v.payments > 0:
		v.fail(walletExists, Finding{UserID: v.only, Expected: "an account", Actual: "none", Message: "Transactions, trades or a checkpoint name this user, but the user has no account."})
	case !v.skipped[anchorMatch]: // if anchor_match was skipped, a checkpoint may still name the user
		return wallet.NotFound()
	}
	return nil
}

// notes checks the key marks that are stored in wallet_key.
func (v *audit) notes() {
	if v.heads == 0 {
		return
	}
	known := 0
	for _, k := range v.Keys.Marks() {
		i := slices.IndexFunc(v.noted, func(n wallet.KeyMark) bool { return n.ID == k.ID })
		if i < 0 {
			continue
		}
		known++
		v.require(schemaValid, v.noted[i].Check == k.Check, func() Finding {
			return Finding{Expected: "the mark of key " + quote(k.ID), Actual: "another one", Message: "The stored mark of a ledger key in wallet_key was changed."}
		})
	}
	v.require(schemaValid, known > 0, func() Finding {
		return Finding{Expected: "a mark of each key", Actual: "none", Message: "The stored marks of the ledger keys are missing from wallet_key."}
	})
}

// advance adds rows to the progress and reports it.
func (v *audit) advance(rows int) {
	v.progress.Done += int64(rows)
	if v.onProgress != nil {
		v.onProgress(v.progress)
	}
}

// sealed records the result of a seal verification and returns it. A row with an unknown
// key fails. An attacker could otherwise add a key id to wallet_key and turn a forged row
// into a skipped check.
func (v *audit) sealed(c check, intact bool, err error, keyID string, f func() Finding) bool {
	v.require(c, intact, func() Finding {
		found := f()
		if err != nil {
			found.Expected, found.Actual = "a seal with a key of the ledger", v.unknownKey(keyID)
		}
		return found
	})
	return intact
}

// unknownKey describes the id of a key that is missing from the ring.
func (v *audit) unknownKey(id string) string {
	if slices.ContainsFunc(v.noted, func(n wallet.KeyMark) bool { return n.ID == id }) {
		return "key " + quote(id) + ", which is in wallet_key but not in WALLET_LEDGER_KEY"
	}
	return "key " + quote(id) + ", which the ledger never used"
}
