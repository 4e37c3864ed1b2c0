package pricing

import "assay/internal/money"

// mean returns the arithmetic mean of prices, rounded half to even. Prices are
// 10^13 at most, so the sum of 900,000 of them still fits.
func mean(prices []money.Micro) money.Micro {
	var sum money.Micro
	for _, p := range prices {
		sum += p
	}
	return money.Div(sum, int64(len(prices)))
}

// median returns the middle of sorted numbers that are not negative, or the
// mean of the two middle ones, rounded half to even.
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
