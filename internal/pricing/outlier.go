package pricing

import (
	"slices"

	"assay/internal/money"
)

const (
	// bandFactor is how far from the median a price may lie, as a factor.
	bandFactor = 3
	// fewestForLogs is how many quotes the rule on the log scale needs.
	fewestForLogs = 5
)

// withoutOutliers applies the outlier rule to s.prices, which are in order, and
// returns the run of them that it leaves. It is false where more would go than
// the rule may drop, of both its steps together: the quotes disagree so much
// that none can be called the odd one.
func (s *scratch) withoutOutliers() (kept []money.Micro, agreed bool) {
	n := len(s.prices)
	if n < fewestForFilter {
		return s.prices, true
	}
	kept = withinBand(s.prices)
	if len(kept) >= fewestForLogs {
		kept = s.withinSpread(kept)
	}
	return kept, n-len(kept) <= (n-1)/2
}

// withinBand drops what lies outside [median/3, median*3], in whole numbers.
func withinBand(prices []money.Micro) []money.Micro {
	m := median(prices)
	for len(prices) > 0 && prices[0]*bandFactor < m {
		prices = prices[1:]
	}
	for len(prices) > 0 && prices[len(prices)-1] > m*bandFactor {
		prices = prices[:len(prices)-1]
	}
	return prices
}

// withinSpread drops what is further from the median m of these prices than 3.5
// times their spread on the log scale: |ln p - ln m| > 3.5 * max(MAD/0.6745,
// 0.05), where MAD is the median of |ln p - ln m|. MAD/0.6745 is what the
// standard deviation would be were they normally distributed.
func (s *scratch) withinSpread(prices []money.Micro) []money.Micro {
	m := ln(uint64(median(prices)))
	s.devs = s.devs[:0]
	for _, p := range prices {
		s.devs = append(s.devs, deviation(p, m))
	}
	slices.Sort(s.devs)
	mad := median(s.devs)
	// Deviations grow towards both ends, so what goes, goes from there.
	for isFar(deviation(prices[0], m), mad) {
		prices = prices[1:]
	}
	for isFar(deviation(prices[len(prices)-1], m), mad) {
		prices = prices[:len(prices)-1]
	}
	return prices
}

func deviation(p money.Micro, m logarithm) logarithm {
	d := ln(uint64(p)) - m
	return max(d, -d)
}

// isFar reports whether dev > 3.5 * max(mad/0.6745, 0.05), without dividing.
// Deviations within the band are at most ln 9, so nothing overflows.
func isFar(dev, mad logarithm) bool {
	return dev*6745 > mad*35_000 && dev*1000 > 175<<logBits
}
