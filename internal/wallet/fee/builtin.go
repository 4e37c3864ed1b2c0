package fee

// BuiltIn returns the set that serves where none is named: five percent of what
// a buyer pays, in any currency, and nothing for deposits and withdrawals.
func BuiltIn() *Set {
	const points = 500
	sale := newRule()
	sale.ID, sale.Priority, sale.Kinds = "sale", 100, []Kind{Sale}
	sale.Tiers = []Tier{{BasisPoints: points}}
	return &Set{Rules: []Rule{sale}, Fallback: newFallback(0)}
}
