package audit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// trades verifies trades: their seal, the terms that their transactions cover, and their
// fee. See relations for their amounts, users and times.
type trades struct {
	*audit
	rules *feeRules
	own   int64 // trades that the user takes part in
}

// verify verifies the trades. stored is the number of stored rows. An id may be NULL or
// repeated.
func (v *trades) verify(stored int64) error {
	if v.only != "" {
		return v.userTrades()
	}
	seen := int64(0)
	for after := int64(math.MinInt64); ; {
		rows, err := v.records.trades(after, ahead)
		if err != nil {
			return err
		}
		seen += int64(len(rows))
		if err := v.page(rows); err != nil {
			return err
		}
		if len(rows) == 0 || rows[len(rows)-1].ID <= after { // no next page; the count reveals rows that were not read
			break
		}
		after = rows[len(rows)-1].ID
	}
	v.counted(tradeCrosscheck, seen, stored, "Trades without an id, or with a duplicate id, exist.")
	return nil
}

// userTrades verifies the trades of the user's transactions.
func (v *trades) userTrades() error {
	all, err := v.records.userTrades(v.scope)
	for ids := range slices.Chunk(all, ahead) {
		if err != nil {
			return err
		}
		var rows []Trade
		if rows, err = v.records.tradesOf(ids); err == nil {
			err = v.page(rows)
		}
	}
	return err
}

func (v *trades) page(rows []Trade) error {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	found, err := v.records.coverings(ids)
	if err != nil {
		return err
	}
	covered := map[int64][]covering{}
	for _, c := range found {
		covered[c.trade] = append(covered[c.trade], c)
	}
	for i := range rows {
		t := &rows[i]
		if i > 0 && t.ID == ids[i-1] {
			t.Faults = append(t.Faults, "id (duplicate)")
		}
		if t.Seller == v.only || t.Buyer == v.only {
			v.own++
		}
		if err := v.trade(t, covered[t.ID]); err != nil {
			return err
		}
	}
	v.advance(len(rows))
	return nil
}

// trade verifies a trade and the terms that its transactions cover.
func (v *trades) trade(t *Trade, by []covering) error {
	v.pass(holdLifecycle)
	intact, err := v.sealer.Intact(&t.Trade)
	v.sealed(tradeCrosscheck, intact, err, t.KeyID, func() Finding {
		return v.finding(t, "the content that key "+quote(t.KeyID)+" sealed", t.MAC.String(), "it does not match its seal.")
	})
	if len(t.Faults) > 0 {
		v.fail(tradeCrosscheck, v.finding(t, "valid values", list(t.Faults), "its row has values that the market never writes."))
	}
	for _, c := range by {
		if c.terms != termsAt(t.Trade, c.kind) {
			f := v.transactionFinding(c.id, "the terms of trade "+integer(t.ID)+" at the posting", "other terms", fmt.Sprintf("the terms of trade %d were changed after the posting.", t.ID))
			v.fail(tradeCrosscheck, f)
			v.suspect(f)
		}
	}
	if !slices.ContainsFunc(by, func(c covering) bool { return c.kind == wallet.KindSale }) {
		return nil
	}
	return v.fee(t)
}

func (v *trades) finding(t *Trade, expected, actual, message string) Finding {
	f := v.transactionFinding(t.Transaction, expected, actual, "")
	f.Message = fmt.Sprintf("Trade %d: %s", t.ID, message)
	return f
}

// termsAt returns the digest that a trade's terms had after the transaction of the given
// kind. It clears the fields that later transactions set.
func termsAt(t wallet.Trade, kind wallet.Kind) wallet.Hash {
	switch kind {
	case wallet.KindSale:
		t.CompletedAt, t.SettleAt, t.Volume, t.Ranked = time.Time{}, time.Time{}, 0, 0
		fallthrough
	case wallet.KindCompletion:
		t.SettledAt, t.ReversedAt = time.Time{}, time.Time{}
	}
	return t.Terms()
}

// fee checks that the fee of a sold trade matches the rules of its version.
func (v *trades) fee(t *Trade) error {
	v.rules.oldest = min(v.rules.oldest, t.FeeVersion)
	rules, err := v.rules.rule(t.FeeVersion)
	if err != nil {
		return err
	}
	if rules.wrong != "" {
		v.fail(feeCrosscheck, v.finding(t, "rules of version "+integer(t.FeeVersion), rules.wrong, "its fee rules are unreadable."))
		return nil
	}
	v.require(feeCrosscheck, rules.inForce(t.CreatedAt), func() Finding {
		return v.finding(t, "a version in force at "+stamp(t.CreatedAt), fmt.Sprintf("version %d, from %s until %s", t.FeeVersion, stamp(rules.from), moment(rules.until)),
			"its version of the fee rules was not in force at that time.")
	})
	quoted, err := fee.Compute(rules.set, fee.Payment{
		Kind: fee.Sale, Amount: t.Price, Currency: t.Currency, Method: t.PaymentMethod, Country: t.Country, At: t.CreatedAt,
	})
	if err != nil {
		v.fail(feeCrosscheck, v.finding(t, "a price", integer(t.Price), "no fee can be computed for it."))
		return nil //nolint:nilerr // the failure is recorded as a finding
	}
	v.require(feeCrosscheck, quoted.Fee == t.Fee && quoted.Rule == t.FeeRule, func() Finding {
		return v.finding(t, fmt.Sprintf("%d by rule %s", quoted.Fee, quoted.Rule), fmt.Sprintf("%d by rule %s", t.Fee, quote(t.FeeRule)),
			"its fee does not match the rules.")
	})
	return nil
}

// moment formats a time. It returns "never" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return stamp(t)
}
