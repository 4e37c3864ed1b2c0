package e2e

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

// This file contains a second implementation of steps 1 to 4, 7 and 8 of the method. It shares
// no code with the product. It uses exact rationals for amounts and floating-point logarithms
// for levels.

// dataDir returns the directory of the recorded data.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the recorded data of ../shared/data are not here")
	}
	return dir
}

func inflated(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if !strings.HasSuffix(path, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// columns reads a CSV file as rows by column name.
func columns(t *testing.T, path string) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(inflated(t, path)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]map[string]string, 0, len(all)-1)
	for _, rec := range all[1:] {
		row := make(map[string]string, len(rec))
		for i, v := range rec {
			row[all[0][i]] = v
		}
		out = append(out, row)
	}
	return out
}

func parseJSON(t *testing.T, path string, into any) {
	t.Helper()
	d := json.NewDecoder(inflated(t, path))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// quoteOf is a market's price of an item, in units of the currency.
type quoteOf struct {
	market string
	price  *big.Rat // rounded to a millionth, like stored prices
}

// amount parses a decimal number given in 1/unit. It returns nil for an empty text.
func amount(t *testing.T, text string, unit int64) *big.Rat {
	t.Helper()
	if text == "" || text == "null" {
		return nil
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	v = rounded(v.Quo(v, big.NewRat(unit, 1)))
	if v.Sign() <= 0 || v.Cmp(big.NewRat(10_000_000, 1)) > 0 {
		return nil
	}
	return v
}

// rounded rounds half to even to a millionth.
func rounded(v *big.Rat) *big.Rat {
	scaled := new(big.Rat).Mul(v, big.NewRat(1_000_000, 1))
	q, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	switch twice := rest.Lsh(rest, 1); twice.Cmp(scaled.Denom()) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, new(big.Int).And(q, big.NewInt(1)))
	}
	return new(big.Rat).SetFrac(q, big.NewInt(1_000_000))
}

func mean(quotes []quoteOf) *big.Rat {
	sum := new(big.Rat)
	for _, q := range quotes {
		sum.Add(sum, q.price)
	}
	return rounded(sum.Quo(sum, big.NewRat(int64(len(quotes)), 1)))
}

func middle(quotes []quoteOf) *big.Rat {
	n := len(quotes)
	a, b := quotes[(n-1)/2].price, quotes[n/2].price
	return rounded(new(big.Rat).Quo(new(big.Rat).Add(a, b), big.NewRat(2, 1)))
}

// opinion is the expected result for an item.
type opinion struct {
	average, median, consensus *big.Rat
	left                       []string // markets outside of the deciding group, sorted
	disputed                   bool
	levelled                   bool // uses learned levels
	// close means that a figure is so near a limit that the last bit of a logarithm decides.
	// The test does not compare such an item.
	close bool
}

// judge prices an item that has at least one quote and no last price.
func judge(quotes []quoteOf, of levels) opinion {
	quotes = slices.Clone(quotes)
	byPrice := func(q []quoteOf) func(i, j int) bool {
		return func(i, j int) bool { return q[i].price.Cmp(q[j].price) < 0 }
	}
	sort.Slice(quotes, byPrice(quotes))
	o := opinion{average: mean(quotes), median: middle(quotes), levelled: of != nil}
	at := of.band(quotes)
	for i, q := range quotes {
		quotes[i].price = levelled(q.price, of[q.market].at(at))
	}
	sort.Slice(quotes, byPrice(quotes))
	group := o.decide(quotes, of)
	o.consensus = o.middleOf(group, of)
	for _, q := range quotes {
		if q.price.Cmp(group[0].price) < 0 || q.price.Cmp(group[len(group)-1].price) > 0 {
			o.left = append(o.left, q.market)
		}
	}
	slices.Sort(o.left)
	return o
}

// levelled returns a price at the consensus level. It divides by a factor with millionth
// precision.
func levelled(price *big.Rat, level float64) *big.Rat {
	factor := big.NewRat(int64(math.Round(math.Exp(level)*1_000_000)), 1_000_000)
	return rounded(new(big.Rat).Quo(price, factor))
}

// decide returns the group of sorted quotes that decides the price.
func (o *opinion) decide(quotes []quoteOf, of levels) []quoteOf {
	var groups [][]quoteOf // for each quote, the quotes up to twice its price
	for i, q := range quotes {
		end := i
		for end < len(quotes) && o.within2(q.price, quotes[end].price) {
			end++
		}
		groups = append(groups, quotes[i:end])
	}
	best := groups[0]
	for _, g := range groups[1:] {
		if len(g) > len(best) || len(g) == len(best) && o.width(g) < o.width(best) {
			best = g
		}
	}
	if 2*len(best) > len(quotes) {
		return best
	}
	o.disputed = true
	best = nil
	for i := 0; i < len(groups); i += len(groups[i]) {
		if g := groups[i]; len(g) > len(best) || len(g) == len(best) && of.far(g) < of.far(best) {
			best = g
		}
	}
	return best
}

// within2 reports whether high is at most twice low.
func (o *opinion) within2(low, high *big.Rat) bool {
	f, _ := new(big.Rat).Quo(high, low).Float64()
	o.close = o.close || f != 2 && math.Abs(f-2) < 1e-4
	return high.Cmp(new(big.Rat).Mul(low, big.NewRat(2, 1))) <= 0
}

func (o *opinion) width(group []quoteOf) float64 {
	return logOf(group[len(group)-1].price) - logOf(group[0].price)
}

// middleOf returns the price of sorted quotes. For an even number it is the quote of the
// clearly less noisy market, or the mean of the two middle quotes.
func (o *opinion) middleOf(group []quoteOf, of levels) *big.Rat {
	n := len(group)
	a, b := group[(n-1)/2], group[n/2]
	noiseA, noiseB := of.noise(a.market), of.noise(b.market)
	if n%2 == 1 || noiseA == 0 || noiseB == 0 {
		return middle(group)
	}
	ratio := math.Max(noiseA, noiseB) / math.Min(noiseA, noiseB)
	o.close = o.close || math.Abs(ratio-1.25) < 1e-3
	switch {
	case ratio < 1.25:
		return middle(group)
	case noiseA < noiseB:
		return a.price
	default:
		return b.price
	}
}

func logOf(r *big.Rat) float64 { f, _ := r.Float64(); return math.Log(f) }

// levelOf is the usual level of a market compared with the others, as logarithms. It includes
// the market's share of quotes that are off by more than 2x.
type levelOf struct {
	level, noise float64
	bands        [4]float64 // below 0.3, 3 and 30 dollars, and above
	distant      float64
}

// levels are the levels of a game's markets. Nothing is known about a missing market.
type levels map[string]*levelOf

// place is a position between two price bands. It has the weight of the band low+1.
type place struct {
	low  int
	part float64
}

// placeOf returns the position of a logarithm of dollars. Around a limit, the level changes
// from one band to the next within a quarter of a decade.
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
