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

// This file and oracle_levels_test.go contain a second implementation of steps 1 to 4, 7 and 8
// of the method. It shares no code with the product. It uses exact rationals for amounts and
// floating-point logarithms for levels.

// dataDir returns the directory of the recorded data.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the recorded data in ../shared/data are not available")
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

// amount parses a decimal number and divides it by unit. It returns nil for an empty text.
func amount(t *testing.T, text string, unit int64) *big.Rat {
	t.Helper()
	if text == "" || text == "null" {
		return nil
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("got %q, want a number", text)
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

// expectation is the expected result for an item.
type expectation struct {
	average, median, consensus *big.Rat
	left                       []string // markets outside of the deciding group, sorted
	disputed                   bool
	levelled                   bool // uses learned levels
	// close means that a figure is so close to a limit that the rounding of a logarithm decides.
	// The test does not compare such an item.
	close bool
}

// newExpectation prices an item that has at least one quote and no last price.
func newExpectation(quotes []quoteOf, of levels) expectation {
	quotes = slices.Clone(quotes)
	byPrice := func(q []quoteOf) func(i, j int) bool {
		return func(i, j int) bool { return q[i].price.Cmp(q[j].price) < 0 }
	}
	sort.Slice(quotes, byPrice(quotes))
	o := expectation{average: mean(quotes), median: middle(quotes), levelled: of != nil}
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
func (o *expectation) decide(quotes []quoteOf, of levels) []quoteOf {
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
func (o *expectation) within2(low, high *big.Rat) bool {
	f, _ := new(big.Rat).Quo(high, low).Float64()
	o.close = o.close || f != 2 && math.Abs(f-2) < 1e-4
	return high.Cmp(new(big.Rat).Mul(low, big.NewRat(2, 1))) <= 0
}

func (o *expectation) width(group []quoteOf) float64 {
	return logOf(group[len(group)-1].price) - logOf(group[0].price)
}

// middleOf returns the price of sorted quotes. For an even number, the price is the middle quote
// of the clearly less noisy market, or the mean of both middle quotes.
func (o *expectation) middleOf(group []quoteOf, of levels) *big.Rat {
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
