package e2e

import (
	"math"
	"math/big"
	"slices"
)

func logOf(r *big.Rat) float64 { f, _ := r.Float64(); return math.Log(f) }

// levelOf is the usual level of a market compared with the other markets, as logarithms. It
// includes the share of the market's quotes that are off by more than 2x.
type levelOf struct {
	level, noise float64
	bands        [4]float64 // below 0.3, 3 and 30 dollars, and above
	distant      float64
}

// levels are the levels of a game's markets. Nothing is known about a missing market.
type levels map[string]*levelOf

// place is a position between the price bands low and low+1. part is the weight of low+1.
type place struct {
	low  int
	part float64
}

// placeOf returns the position of a logarithm of dollars. The level changes gradually from one
// band to the next, up to a quarter of a decade below and above their limit.
func placeOf(l float64) place {
	for low, bound := range []float64{0.3, 3, 30} {
		part := (l-math.Log(bound))/(math.Ln10/2) + 0.5
		if part <= 0 {
			return place{low, 0}
		}
		if part < 1 {
			return place{low, part}
		}
	}
	return place{2, 1}
}

func bandOf(l float64) int {
	b := 0
	for _, bound := range []float64{0.3, 3, 30} {
		if l >= math.Log(bound) {
			b++
		}
	}
	return b
}

func (l *levelOf) at(p place) float64 {
	if l == nil {
		return 0
	}
	return l.bands[p.low] + (l.bands[p.low+1]-l.bands[p.low])*p.part
}

// band returns the position that selects the levels of an item's quotes.
func (of levels) band(quotes []quoteOf) place {
	var logs []float64
	for _, q := range quotes {
		l := logOf(q.price)
		if m := of[q.market]; m != nil {
			l -= m.level
		}
		logs = append(logs, l)
	}
	return placeOf(agreedOf(logs))
}

func (of levels) noise(market string) float64 {
	if m := of[market]; m != nil {
		return m.noise
	}
	return 0
}

// far returns the smallest share of distant quotes among a group's markets. It returns 2 if
// the shares are unknown.
func (of levels) far(group []quoteOf) float64 {
	least := 2.0
	for _, q := range group {
		if m := of[q.market]; m != nil {
			least = math.Min(least, m.distant)
		}
	}
	return least
}

// agreedOf returns the median of the largest group within a factor of 2, if it contains more
// than half of the values. Otherwise it returns the median of all values.
func agreedOf(logs []float64) float64 {
	logs = slices.Sorted(slices.Values(logs))
	var best []float64
	for i := range logs {
		end := i
		for end < len(logs) && logs[end]-logs[i] <= math.Ln2 {
			end++
		}
		g := logs[i:end]
		if len(g) > len(best) || len(g) == len(best) && g[len(g)-1]-g[0] < best[len(best)-1]-best[0] {
			best = g
		}
	}
	if 2*len(best) <= len(logs) {
		best = logs
	}
	return medianOf(best)
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// learnLevels learns the levels of new markets, from names with quotes of at least three
// markets. A market needs 100 such names.
func learnLevels(items [][]quoteOf) levels {
	const fewest = 100
	items = slices.DeleteFunc(slices.Clone(items), func(q []quoteOf) bool { return len(q) < 3 })
	all := levels{}
	for _, quotes := range items {
		for _, q := range quotes {
			all[q.market] = &levelOf{}
		}
	}
	// residuals calls add for each quote, with the median of the other levelled quotes.
	residuals := func(level func(i int, market string) float64, add func(i int, market string, price, others float64)) {
		for i, quotes := range items {
			for k, q := range quotes {
				var others []float64
				for j, o := range quotes {
					if j != k {
						others = append(others, logOf(o.price)-level(i, o.market))
					}
				}
				add(i, q.market, logOf(q.price), medianOf(others))
			}
		}
	}
	for step, moved := 0, true; moved && step < 20; step++ {
		of := map[string][]float64{}
		residuals(func(_ int, market string) float64 { return all[market].level }, func(_ int, market string, price, others float64) {
			of[market] = append(of[market], price-others)
		})
		next, learned := map[string]float64{}, []float64(nil)
		for market, r := range of {
			if len(r) >= fewest {
				next[market] = medianOf(r)
				learned = append(learned, next[market])
			}
		}
		if len(learned) == 0 {
			return nil
		}
		moved = false
		for market, l := range next {
			l -= medianOf(learned)
			moved = moved || math.Abs(l-all[market].level) > 0.001
			all[market].level, all[market].bands = l, [4]float64{l, l, l, l}
		}
	}
	middles := make([]float64, len(items))
	for i, quotes := range items {
		var logs []float64
		for _, q := range quotes {
			logs = append(logs, logOf(q.price)-all[q.market].level)
		}
		middles[i] = agreedOf(logs)
	}
	for range 6 {
		var of [4]map[string][]float64
		for b := range of {
			of[b] = map[string][]float64{}
		}
		residuals(func(i int, market string) float64 { return all[market].at(placeOf(middles[i])) }, func(i int, market string, price, others float64) {
			b, l := bandOf(middles[i]), all[market]
			rest := price - l.at(placeOf(middles[i])) - others // zero once the levels fit
			of[b][market] = append(of[b][market], l.bands[b]+rest)
		})
		for b := range of {
			var learned []float64
			for market, l := range all {
				l.bands[b] = l.level
				if r := of[b][market]; len(r) > 0 {
					n := float64(len(r))
					l.bands[b] += (medianOf(r) - l.level) * n / (n + 40)
				}
				learned = append(learned, l.bands[b])
			}
			middle := medianOf(learned)
			for _, l := range all {
				l.bands[b] -= middle
			}
		}
	}
	distances := map[string][]float64{}
	residuals(func(i int, market string) float64 { return all[market].at(all.band(items[i])) }, func(i int, market string, price, others float64) {
		distances[market] = append(distances[market], math.Abs(price-all[market].at(all.band(items[i]))-others))
	})
	for market, d := range distances {
		all[market].noise = medianOf(d)
		for _, v := range d {
			if v > math.Ln2 {
				all[market].distant += 1 / float64(len(d))
			}
		}
	}
	return all
}
