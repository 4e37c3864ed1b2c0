package pricing

import "assay/internal/money"

// mean returns the arithmetic mean of prices, rounded half to even. Prices are at most
// 10^13 micro-units, so the sum of 900,000 prices cannot overflow.
func mean(prices []money.Micro) money.Micro {
	var sum money.Micro
	for _, p := range prices {
		sum += p
	}
	return money.Div(sum, int64(len(prices)))
}

// median returns the median of sorted, non-negative numbers. For an even count it is the
// mean of the two middle numbers, rounded half to even.
func median[T ~int64](sorted []T) T {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	sum := sorted[n/2-1] + sorted[n/2]
	half := sum / 2
	if sum%2 == 1 && half%2 == 1 {
		half++
	}
	return half
}
