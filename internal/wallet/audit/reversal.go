package audit

import (
	"slices"

	"assay/internal/wallet"
)

// linkReversals finds what transactions take back, and by how many they are taken
// back.
func (v *audit) linkReversals(payments []payment) error {
	ids := make([]int64, 0, len(payments))
	var originals []int64
	for i := range payments {
		ids = append(ids, payments[i].id)
		if t := payments[i].Transaction; t != nil && t.Reverses != 0 {
			originals = append(originals, t.Reverses)
		}
	}
	slices.Sort(originals)
	originals = slices.Compact(originals)
	rows, err := v.takenBack(ids, originals)
	if err != nil {
		return err
	}
	counts := map[int64]int{}
	for i := range rows {
		counts[rows[i].Reverses]++
	}
	found, err := v.load(originals)
	if err != nil {
		return err
	}
	for i := range found {
		found[i].reversals = counts[found[i].id]
	}
	for i := range payments {
		p := &payments[i]
		p.reversals = counts[p.id]
		if p.Transaction == nil || p.Reverses == 0 {
			continue
		}
		if k, ok := slices.BinarySearch(originals, p.Reverses); ok && found[k].Transaction != nil {
			p.original = &found[k]
		}
	}
	return nil
}

// takenBack returns what takes back transactions, or the originals of such. Where
// everything is verified there are no others between the transactions.
func (v *audit) takenBack(ids, originals []int64) (out []Transaction, err error) {
	of := slices.Concat(ids, originals)
	if v.only == "" {
		first, last := ids[0], ids[len(ids)-1]
		if out, err = v.records.ReversalsBetween(first, last); err != nil {
			return nil, err
		}
		of = slices.DeleteFunc(of, func(id int64) bool { return id >= first && id <= last })
	}
	slices.Sort(of)
	for chunk := range slices.Chunk(slices.Compact(of), page) {
		rows, err := v.records.Reversals(chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// reversal examines what a transaction takes back, and whether it was taken back
// more than once.
func (v *audit) reversal(p *payment) {
	if p.reversals > 0 {
		v.that(reversalLink, p.reversals == 1, func() Finding {
			return v.finding(p, "1", integer(int64(p.reversals)), "it was taken back more than once.")
		})
	}
	takes := p.kind() == wallet.KindReversal || p.Transaction != nil && p.Reverses != 0 ||
		slices.ContainsFunc(p.entries, func(e Entry) bool {
			return e.Reverses != 0 || e.Type == wallet.TypeReversal || e.Type == wallet.TypeSaleReversal
		})
	if !takes {
		return
	}
	switch o := p.original; {
	case p.kind() != wallet.KindReversal:
		v.fail(reversalLink, v.finding(p, "a reversal", quote(string(p.kind())), "it takes something back, and is no reversal."))
	case o == nil:
		v.fail(reversalLink, v.finding(p, "transaction "+integer(p.Reverses), "none", "what it takes back is not there."))
	case o.reversals > 1:
		v.fail(reversalLink, v.finding(p, "1", integer(int64(o.reversals)), "what it takes back was taken back more than once."))
	case o.Trade != p.Trade || !reversible(o.Kind) || o.id == p.id:
		v.fail(reversalLink, v.finding(p, "a transaction that can be taken back", string(o.Kind), "it takes back what cannot be taken back, or is of another trade."))
	default:
		v.that(reversalLink, opposite(o, p), func() Finding {
			return v.finding(p, "the opposite of transaction "+integer(o.id), "something else", "its entries are not the opposite of what it takes back.")
		})
	}
}

func reversible(k wallet.Kind) bool {
	return k == wallet.KindDeposit || k == wallet.KindWithdrawal || k == wallet.KindCorrection || k == wallet.KindSale
}

// opposite reports whether each entry of a transaction is taken back by one of
// another, and there are no others. What only moved between held and available
// stays as it was.
func opposite(o, by *payment) bool {
	n := 0
	for i := range o.entries {
		e := &o.entries[i]
		if e.Type == wallet.TypeRelease || e.Type == wallet.TypeFree {
			continue
		}
		n++
		want := wallet.TypeReversal
		if e.Type == wallet.TypeSale {
			want = wallet.TypeSaleReversal
		}
		if !slices.ContainsFunc(by.entries, func(r Entry) bool {
			return r.Account == e.Account && r.Reverses == e.Number && r.Number > e.Number && r.Amount == -e.Amount && r.Type == want
		}) {
			return false
		}
	}
	return n == len(by.entries)
}
