package fee

// BuiltIn returns the default set of rules. It charges five percent of the price for a
// sale in any currency. Deposits and withdrawals are free.
func BuiltIn() *Set {
	const points = 500
	sale := newRule()
	sale.ID, sale.Priority, sale.Kinds = "sale", 100, []Kind{Sale}
	sale.Tiers = []Tier{{BasisPoints: points}}
	return &Set{Rules: []Rule{sale}, Fallback: newFallback(0)}
}
