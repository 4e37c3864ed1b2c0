package audit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// trades verifies trades: that each is what was sealed, that its transactions cover it,
// and that its fee is what the rules make of it. How its amounts, users and times go with
// the ledger is what relations compare.
type trades struct {
	*audit
	rules *feeRules
	own   int64 // in which the user has part
}

// verify examines the trades. there is how many there are: an id may be none, or taken.
func (v *trades) verify(there int64) error {
	if v.only != "" {
		return v.deals()
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
		if len(rows) == 0 || rows[len(rows)-1].ID <= after { // that leads nowhere; those behind it are counted
			break
		}
		after = rows[len(rows)-1].ID
	}
	v.counted(tradeCrosscheck, seen, there, "There are trades that have no id, or one that is taken.")
	return nil
}

// deals examines the trades of the transactions that the user has part in.
func (v *trades) deals() error {
	all, err := v.records.deals(v.scope)
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
			t.Faults = append(t.Faults, "id, which another row has")
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

// trade examines a trade with its transactions.
func (v *trades) trade(t *Trade, by []covering) error {
	v.pass(holdLifecycle)
	intact, err := v.sealer.Intact(&t.Trade)
	v.sealed(tradeCrosscheck, intact, err, t.KeyID, func() Finding {
		return v.finding(t, "what key "+quote(t.KeyID)+" sealed", t.MAC.String(), "it is not what was sealed.")
	})
	if len(t.Faults) > 0 {
		v.fail(tradeCrosscheck, v.finding(t, "values that the market writes", list(t.Faults), "its row holds what no column of its should."))
	}
	for _, c := range by {
		if c.terms != termsAt(t.Trade, c.kind) {
			f := v.about(c.id, "trade "+integer(t.ID)+" as it was", "another one", fmt.Sprintf("what it covers of trade %d was changed since it was posted.", t.ID))
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
	f := v.about(t.Transaction, expected, actual, "")
	f.Message = fmt.Sprintf("Trade %d: %s", t.ID, message)
	return f
}

// termsAt is the digest of a trade as a transaction of a kind left it: what came
// later had not happened yet.
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

// fee examines whether the fee of a trade that was sold matches the rules of its version.
func (v *trades) fee(t *Trade) error {
	v.rules.oldest = min(v.rules.oldest, t.FeeVersion)
	rules, err := v.rules.rule(t.FeeVersion)
	if err != nil {
		return err
	}
	if rules.wrong != "" {
		v.fail(feeCrosscheck, v.finding(t, "rules of version "+integer(t.FeeVersion), rules.wrong, "its fee rules cannot be read."))
		return nil
	}
	v.that(feeCrosscheck, rules.inForce(t.CreatedAt), func() Finding {
		return v.finding(t, "a version in force at "+stamp(t.CreatedAt), fmt.Sprintf("version %d, from %s until %s", t.FeeVersion, stamp(rules.from), moment(rules.until)),
			"it names a version of the rules that was not in force then.")
	})
	quoted, err := fee.Compute(rules.set, fee.Payment{
		Kind: fee.Sale, Amount: t.Price, Currency: t.Currency, Method: t.PaymentMethod, Country: t.Country, At: t.CreatedAt,
	})
	if err != nil {
		v.fail(feeCrosscheck, v.finding(t, "a price", integer(t.Price), "no fee can be computed for it."))
		return nil //nolint:nilerr // that is what was found
	}
	v.that(feeCrosscheck, quoted.Fee == t.Fee && quoted.Rule == t.FeeRule, func() Finding {
		return v.finding(t, fmt.Sprintf("%d by rule %s", quoted.Fee, quoted.Rule), fmt.Sprintf("%d by rule %s", t.Fee, quote(t.FeeRule)),
			"its fee does not match the rules.")
	})
	return nil
}

// moment formats a time that may be zero.
func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return stamp(t)
}
