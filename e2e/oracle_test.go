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

// A second opinion on prices, written without a line of the product's: exact
// rationals for amounts, ordinary floating-point logarithms for the outlier rule.

// dataDir is where the recorded data lie.
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
	price  *big.Rat // rounded to a millionth, as prices are kept
}

// amount reads a decimal number given in 1/unit; nil is none.
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

// opinion is what an item should be worth.
type opinion struct {
	average, median, robust *big.Rat
	left                    []string // markets left out as outliers, sorted
	disputed                bool
	// close: a quote lies so near the edge of the outlier rule that rounding
	// decides; such an item is not compared.
	close bool
}

// judge prices an item from at least one quote by the rules of the estimate.
func judge(quotes []quoteOf) opinion {
	quotes = slices.Clone(quotes)
	sort.Slice(quotes, func(i, j int) bool { return quotes[i].price.Cmp(quotes[j].price) < 0 })
	o := opinion{average: mean(quotes), median: middle(quotes)}
	kept := quotes
	if len(quotes) >= 3 {
		third, triple := new(big.Rat).Quo(o.median, big.NewRat(3, 1)), new(big.Rat).Mul(o.median, big.NewRat(3, 1))
		kept = nil
		for _, q := range quotes {
			if q.price.Cmp(third) >= 0 && q.price.Cmp(triple) <= 0 {
				kept = append(kept, q)
			}
		}
		if len(kept) >= 5 {
			kept = o.bySpread(kept)
		}
	}
	if len(quotes)-len(kept) > (len(quotes)-1)/2 {
		o.disputed, o.robust = true, o.median
		return o
	}
	o.robust = mean(kept)
	for _, q := range quotes {
		if !slices.Contains(kept, q) {
			o.left = append(o.left, q.market)
		}
	}
	slices.Sort(o.left)
	return o
}

func (o *opinion) bySpread(quotes []quoteOf) (kept []quoteOf) {
	logOf := func(r *big.Rat) float64 { f, _ := r.Float64(); return math.Log(f) }
	m := logOf(middle(quotes))
	devs := make([]float64, len(quotes))
	for i, q := range quotes {
		devs[i] = math.Abs(logOf(q.price) - m)
	}
	sorted := slices.Sorted(slices.Values(devs))
	mad := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	bound := 3.5 * math.Max(mad/0.6745, 0.05)
	for i, q := range quotes {
		o.close = o.close || math.Abs(devs[i]-bound) < 1e-6
		if devs[i] <= bound {
			kept = append(kept, q)
		}
	}
	return kept
}
