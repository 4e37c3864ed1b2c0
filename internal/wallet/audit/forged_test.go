package audit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// reseal seals the stored transactions, entries and accounts again, as an attacker with
// the key can. Afterwards every hash, link and MAC is valid. terms returns the digest of the trade
// terms that a transaction of a kind covers.
func (w *world) reseal(terms func(t wallet.Trade, kind wallet.Kind) wallet.Hash) {
	w.Helper()
	w.must(audit.ReadLedger(context.Background(), w.store, func(l *audit.Snapshot) error {
		s := w.Keys.Sealer()
		rows, err := l.TransactionsForTests()
		if err != nil {
			return err
		}
		postings := map[int64]wallet.Hash{}
		for i := range rows {
			t := rows[i]
			if t.Trade != 0 {
				t.Terms = terms(w.row(t.Trade), t.Kind)
			}
			s.SealTransaction(&t)
			postings[t.ID] = t.Hash
			w.exec(`UPDATE wallet_transaction SET terms = $1, hash = $2 WHERE id = $3`, t.Terms[:], t.Hash[:], t.ID)
		}
		entries, err := l.Entries("", audit.Place{}, 10_000)
		if err != nil {
			return err
		}
		last := map[wallet.Account]wallet.Hash{}
		for i := range entries {
			e := entries[i].Entry
			e.Posting, e.Previous = postings[e.Transaction], last[e.Account]
			s.SealEntry(&e)
			last[e.Account] = e.Hash
			w.exec(`UPDATE wallet_entry SET posting_hash = $1, previous_hash = $2, hash = $3 WHERE user_id = $4 AND currency = $5 AND number = $6`,
				e.Posting[:], e.Previous[:], e.Hash[:], e.User, string(e.Currency), e.Number)
		}
		heads, err := l.Heads("", wallet.Account{}, 10_000)
		for i := range heads {
			h := heads[i].Head
			h.Hash = last[h.Account]
			s.SealHead(&h)
			w.exec(`UPDATE wallet_account SET head_hash = $1, mac = $2 WHERE user_id = $3 AND currency = $4`, h.Hash[:], h.MAC[:], h.User, string(h.Currency))
		}
		return err
	}))
}

// termsOf returns the digest of the terms that a trade has after a transaction of a kind.
func termsOf(t wallet.Trade, kind wallet.Kind) wallet.Hash {
	var never wallet.Trade
	switch kind {
	case wallet.KindSale:
		t.CompletedAt, t.SettleAt, t.Volume, t.Ranked, t.SettledAt, t.ReversedAt = never.CompletedAt, never.SettleAt, 0, 0, never.SettledAt, never.ReversedAt
	case wallet.KindCompletion:
		t.SettledAt, t.ReversedAt = never.SettledAt, never.ReversedAt
	}
	return t.Terms()
}

// TestVerify_DetectsTradeResealedAfterCheckpoint simulates an attacker with the key. An
// earlier checkpoint covers the trade, so it reveals the change.
func TestVerify_DetectsTradeResealedAfterCheckpoint(t *testing.T) {
	w := example(t)
	w.loosen()
	w.relax(func() { w.complete(3) }) // trade 1 is settled, 2 reversed, 4 pending
	w.keep(w.checkpoint())
	kept := map[string]string{}
	for _, user := range []string{"alice", "bob"} {
		kept[user] = *w.verify(user, "").Checkpoint
	}
	if full := w.verifyAll(); !full.OK {
		t.Fatalf("before the change: got failures %+v, want none", full.Failures)
	}
	s := w.save()
	outer := w.TB
	for name, change := range map[string]string{
		"hold end":            `UPDATE trade SET settle_at = settle_at + 86400000000 WHERE id = 3`,
		"hold end of settled": `UPDATE trade SET settle_at = settle_at - 1 WHERE id = 1`,
		"completion time":     `UPDATE trade SET completed_at = completed_at + 1 WHERE id = 3`,
		"asset":               `UPDATE trade SET asset_id = 'b' WHERE id = 3`,
		"asset of pending":    `UPDATE trade SET asset_id = 'b' WHERE id = 4`,
		"amount":              `UPDATE trade SET amount = 2 WHERE id = 3`,
		"what counts":         `UPDATE trade SET volume = volume + 1 WHERE id = 1`,
		"note of a sale":      `UPDATE wallet_transaction SET note = 'cash/FR' WHERE kind = 'sale' AND trade_id = 3`,
		"payment method":      `UPDATE trade SET payment_method = 'cash' WHERE id = 3`,
		"note of a deposit":   `UPDATE wallet_transaction SET note = 'harmless' WHERE id = (SELECT min(id) FROM wallet_transaction WHERE kind = 'deposit')`,
		"completion undone":   `UPDATE trade SET state = 'pending', completed_at = 0, settle_at = 0, volume = 0, ranked = 0 WHERE id = 3`,
	} {
		for _, depth := range []string{"row", "chain"} {
			t.Run(name+", "+depth, func(t *testing.T) {
				w.TB = t
				defer func() { w.TB = outer }()
				if n := w.exec(change); n != 1 {
					t.Fatalf("%s: got %d changed rows, want 1", change, n)
				}
				defer s.restore(w)
				for id := int64(1); id <= w.trades; id++ {
					w.change(id, `price = price`)
				}
				if depth == "chain" {
					w.exec(`UPDATE listing SET asset_id = t.asset_id, amount = t.amount FROM trade t WHERE t.listing_id = listing.id`)
					w.reseal(termsOf)
				} else {
					w.resealTransactions()
				}
				full := w.verifyAll()
				expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, "anchor_match")
				for user, checkpoint := range kept {
					if name == "note of a deposit" && user != "alice" || name == "asset of pending" && user != "alice" {
						continue
					}
					r := w.verify(user, checkpoint)
					expect(t, "of "+user, r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
				}
			})
		}
	}
}

// resealTransactions seals the stored transactions again. It does not seal entries and
// accounts.
func (w *world) resealTransactions() {
	w.Helper()
	w.must(audit.ReadLedger(context.Background(), w.store, func(l *audit.Snapshot) error {
		rows, err := l.TransactionsForTests()
		for i := range rows {
			t := rows[i]
			w.Keys.Sealer().SealTransaction(&t)
			w.exec(`UPDATE wallet_transaction SET hash = $1 WHERE id = $2`, t.Hash[:], t.ID)
		}
		return err
	}))
}

// A checkpoint cannot reveal changes of trades that are newer than the checkpoint.
func TestVerify_ComparesNewerTradesWithTheirTransactions(t *testing.T) {
	w := example(t)
	w.keep(w.checkpoint())
	w.sell("alice", "bob", "USD", 100)
	w.loosen()
	w.change(w.trades, `asset_id = 'b'`)
	full := w.verifyAll()
	expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, "trade_crosscheck")
	if f := failing(full.Checks); slices.Contains(f, "anchor_match") {
		t.Errorf("got failed checks %v with a checkpoint that does not cover the trade, want no anchor_match", f)
	}
}

func TestVerify_MatchesCompletionsToTrades(t *testing.T) {
	w := example(t)
	w.loosen()
	s := w.save()
	for i, change := range []string{
		`DELETE FROM wallet_transaction WHERE kind = 'completion'`,
		`UPDATE wallet_transaction SET trade_id = 3 WHERE kind = 'completion'`,
		`UPDATE wallet_entry SET user_id = 'carol', number = 77 WHERE type = 'completion' AND user_id = 'bob'`,
		`UPDATE wallet_entry SET amount = 5 WHERE type = 'completion' AND user_id = 'bob'`,
		`UPDATE trade SET completed_at = completed_at - 1 WHERE id = 1`,
	} {
		w.exec(change)
		full := w.verifyAll()
		expect(t, fmt.Sprint("of the ledger after change ", i), full.OK, full.Status, full.Checks, full.Failures, "")
		s.restore(w)
	}
}
