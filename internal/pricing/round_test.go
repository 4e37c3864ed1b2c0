package pricing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

// simulation simulates markets that quote the same names, each at a different level and with
// random deviations.
type simulation struct {
	r       *rand.Rand
	names   []string
	levels  []float64
	prices  []float64 // true prices in units
	quotes  [][]money.Micro
	markets []Market
	last    []*Response
	set     *Set
	now     time.Time
}

func newSimulation(r *rand.Rand, markets, names int) *simulation {
	f := &simulation{r: r, set: NewSet(money.Scale), now: noon}
	skin := 0.0
	for i := range names {
		if i%5 == 0 {
			skin = math.Exp(2*r.NormFloat64() + 2)
		}
		name := "Skin " + strconv.Itoa(i/5) + " (" + []string{"Factory New", "Minimal Wear", "Field-Tested", "Well-Worn", "Battle-Scarred"}[i%5] + ")"
		if i%7 == 0 {
			name = "★ " + name
		}
		f.names, f.prices = append(f.names, name), append(f.prices, skin*math.Exp(-0.5*float64(i%5)+0.1*r.NormFloat64()))
	}
	for k := range markets {
		f.levels = append(f.levels, math.Exp(0.3*r.NormFloat64()))
		f.markets, f.last = append(f.markets, Market{ID: int64(k + 1)}), append(f.last, nil)
		q := make([]money.Micro, names)
		for i := range q {
			q[i] = cents(f.prices[i] * f.levels[k] * math.Exp(0.08*r.NormFloat64()))
		}
		f.quotes = append(f.quotes, q)
	}
	return f
}

func cents(units float64) money.Micro {
	return money.Micro(math.Round(max(units, 0.02)*100)) * cent
}

// move changes the prices of a share of the names on all markets, and 3 % of the quotes
// independently.
func (f *simulation) move(share, sigma float64) {
	for i := range f.names {
		common := 1.0
		if f.r.Float64() < share {
			common = math.Exp(sigma * f.r.NormFloat64())
		}
		for k := range f.quotes {
			if f.r.Float64() < 0.03 {
				f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * math.Exp(0.05*f.r.NormFloat64()))
			}
			f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * common)
		}
	}
}

// response returns a response with one amount per name. It omits amounts of 0.
func (f *simulation) response(q []money.Micro) *Response {
	resp := &Response{At: f.now, Rate: money.RateScale}
	for i, a := range q {
		if a > 0 {
			resp.Points = append(resp.Points, Point{Key: uint64(i), Traits: TraitsOf(f.names[i]), Amount: a})
		}
	}
	return resp
}

// round runs one round with the markets in random order. change may modify the response of
// a market, or return nil for no response. round stores the results in f, as a
// refresh does.
func (f *simulation) round(t *testing.T, change func(market int, resp *Response) *Response) Result {
	t.Helper()
	r := NewRound(f.now, f.set)
	news := make([]*Response, len(f.markets))
	for _, k := range f.r.Perm(len(f.markets)) {
		resp := f.response(f.quotes[k])
		if change != nil {
			resp = change(k, resp)
		}
		if resp != nil {
			f.r.Shuffle(len(resp.Points), func(i, j int) { resp.Points[i], resp.Points[j] = resp.Points[j], resp.Points[i] })
		}
		news[k] = resp
		if err := r.Add(f.markets[k], f.last[k], resp); err != nil {
			t.Fatal(err)
		}
	}
	res := r.Finish(func() {})
	for k, o := range res.Markets {
		f.markets[k].State = o.State
		if o.History != nil {
			f.markets[k].History = o.History
		}
		if news[k] != nil && o.Refusal == nil {
			f.last[k] = news[k]
		}
	}
	f.set = res.Set
	return res
}

// run runs the given number of rounds, 12 hours apart. It fails the test if a response is
// refused.
func (f *simulation) run(t *testing.T, rounds int) Result {
	t.Helper()
	var res Result
	for range rounds {
		res = f.round(t, nil)
		for _, o := range res.Markets {
			if o.Refusal != nil {
				t.Fatalf("good response of market %d: got the refusal %s, want nil", o.ID, o.Refusal)
			}
		}
		f.now = f.now.Add(12 * time.Hour)
		f.move(0.06, 0.15)
	}
	return res
}

func TestRound_DoesNotDependOnTheOrderOfMarketsAndNames(t *testing.T) {
	seed := randtest.Seed(t)
	for range randtest.Count(2, 50) {
		var sums [2][]byte
		for try := range sums {
			f := newSimulation(rand.New(rand.NewPCG(seed, 1)), 5, 400)
			f.r = rand.New(rand.NewPCG(seed, 1)) // the same prices in both attempts
			var res Result
			for range 6 {
				prices := f.r
				f.r = rand.New(rand.NewPCG(seed, uint64(try))) // a different order in each attempt
				res = f.round(t, nil)
				f.r = prices
				f.now = f.now.Add(12 * time.Hour)
				f.move(0.06, 0.3)
			}
			sums[try] = digest(t, res)
		}
		if !bytes.Equal(sums[0], sums[1]) {
			t.Fatalf("digests of two orders: got %x and %x, want the same", sums[0], sums[1])
		}
		seed++
	}
}

// digest returns a hash of all stored results of a round.
func digest(t *testing.T, res Result) []byte {
	t.Helper()
	b, err := res.Set.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range res.Markets {
		state, err := o.State.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		b = slices.Concat(b, state, o.History)
	}
	movers, err := res.Movers.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, movers...)
	sum := sha256.Sum256(b)
	return sum[:]
}

// The expected digest was computed on amd64. It must be the same on all machines.
func TestRound_HasTheSameResultOnAllMachines(t *testing.T) {
	f := &simulation{r: rand.New(rand.NewPCG(1, 1)), set: NewSet(money.Scale), now: noon}
	// The test itself must not use floating point either.
	for i := range 600 {
		f.names = append(f.names, "Skin "+strconv.Itoa(i)+" (Factory New)")
	}
	for k := range 4 {
		q := make([]money.Micro, len(f.names))
		for i := range q {
			q[i] = money.Micro(100+i*i*7)*cent*money.Micro(90+10*k)/100 + money.Micro(f.r.IntN(5+i))*cent
		}
		f.quotes, f.markets, f.last = append(f.quotes, q), append(f.markets, Market{ID: int64(k + 1)}), append(f.last, nil)
	}
	var res Result
	for range 5 {
		res = f.round(t, nil)
		f.now = f.now.Add(12 * time.Hour)
		for k := range f.quotes {
			for range 40 {
				i := f.r.IntN(len(f.names))
				f.quotes[k][i] += f.quotes[k][i] / money.Micro(3+f.r.IntN(20))
			}
		}
	}
	const want = "a7a136581181b2cd28f4c673e74402342347d02e1fc97d168fb9d30c4c7ca7f7"
	if got := hex.EncodeToString(digest(t, res)); got != want {
		t.Errorf("got the digest %s, want %s", got, want)
	}
}

func BenchmarkRound30000Names10Markets(b *testing.B) {
	f := newSimulation(rand.New(rand.NewPCG(9, 1)), 10, 30_000)
	t := &testing.T{}
	f.run(t, 3)
	next := make([]*Response, len(f.markets))
	for k := range next {
		next[k] = f.response(f.quotes[k])
	}
	b.ReportAllocs()
	for b.Loop() {
		r := NewRound(f.now, f.set)
		for k := range f.markets {
			if err := r.Add(f.markets[k], f.last[k], next[k]); err != nil {
				b.Fatal(err)
			}
		}
		r.Finish(func() {})
	}
}
