package pricing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

// fair is some markets that quote the same names, each at its level and with its
// own deviations.
type fair struct {
	r       *rand.Rand
	names   []string
	levels  []float64
	prices  []float64 // true, in units
	quotes  [][]money.Micro
	markets []Market
	last    []*Response
	set     *Set
	now     time.Time
}

func newFair(r *rand.Rand, markets, names int) *fair {
	f := &fair{r: r, set: NewSet(money.Scale), now: noon}
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

// move changes a share of the names on all markets, and some quotes by themselves.
func (f *fair) move(share, sigma float64) {
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

// response makes a market's response from amounts by name.
func (f *fair) response(q []money.Micro) *Response {
	resp := &Response{At: f.now, Rate: money.RateScale}
	for i, a := range q {
		if a > 0 {
			resp.Points = append(resp.Points, Point{Key: uint64(i), Traits: TraitsOf(f.names[i]), Amount: a})
		}
	}
	return resp
}

// round makes one round; order is that of adding markets, change may alter
// responses, and a nil one is none. It keeps what a refresh would keep.
func (f *fair) round(t *testing.T, change func(market int, resp *Response) *Response) Result {
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

// run makes so many rounds 12 hours apart.
func (f *fair) run(t *testing.T, rounds int) Result {
	t.Helper()
	var res Result
	for range rounds {
		res = f.round(t, nil)
		for _, o := range res.Markets {
			if o.Refusal != nil {
				t.Fatalf("a good response is refused: %s", o.Refusal)
			}
		}
		f.now = f.now.Add(12 * time.Hour)
		f.move(0.06, 0.15)
	}
	return res
}

func TestRound_TheOrderOfMarketsAndNamesNeverMatters(t *testing.T) {
	seed := randtest.Seed(t)
	for range randtest.Count(2, 50) {
		var sums [2][]byte
		for try := range sums {
			f := newFair(rand.New(rand.NewPCG(seed, 1)), 5, 400)
			f.r = rand.New(rand.NewPCG(seed, 1)) // the same world
			var res Result
			for range 6 {
				shuffled := rand.New(rand.NewPCG(seed, uint64(try))) // another order
				world := f.r
				f.r = shuffled
				res = f.round(t, nil)
				f.r = world
				f.now = f.now.Add(12 * time.Hour)
				f.move(0.06, 0.3)
			}
			sums[try] = digest(t, res)
		}
		if !bytes.Equal(sums[0], sums[1]) {
			t.Fatal("another order gives another result")
		}
		seed++
	}
}

// digest is of everything that a round stores.
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

// The figure was computed on amd64. Another machine must reach the same.
func TestRound_TwoMachinesAgreeToTheDigit(t *testing.T) {
	f := &fair{r: rand.New(rand.NewPCG(1, 1)), set: NewSet(money.Scale), now: noon}
	// Whole numbers only, so that not even the test needs a float.
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
	const want = "7551cd0ec00a727e68c68c9efc774fd970cb840b50e05ed5f440789d38e459e0"
	if got := hex.EncodeToString(digest(t, res)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestRound_ARefusedResponseChangesNothingThatIsStored(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(4, 200) {
		seed := r.Uint64()
		var results [2]Result
		for try := range results {
			f := newFair(rand.New(rand.NewPCG(seed, 1)), 4, 400)
			f.run(t, 5)
			results[try] = f.round(t, func(market int, resp *Response) *Response {
				switch {
				case market != 2:
					return resp
				case try == 0:
					return nil // it does not respond
				}
				for i := range resp.Points {
					resp.Points[i].Amount = f.quotes[2][f.r.IntN(len(f.names))]
				}
				return resp
			})
		}
		a, b := results[0].Markets[2], results[1].Markets[2]
		if b.Refusal == nil {
			t.Fatal("shuffled names are not refused")
		}
		if b.State.RefusedSince.IsZero() || b.State.Refused != *b.Refusal {
			t.Fatalf("the refusal is not kept: %+v", b.State)
		}
		b.State.RefusedSince, b.State.Refused = a.State.RefusedSince, a.State.Refused
		if !reflect.DeepEqual(a.State, b.State) || !bytes.Equal(a.History, b.History) {
			t.Fatalf("a refused response leaves %+v, none %+v", b.State, a.State)
		}
		if !reflect.DeepEqual(results[0].Set, results[1].Set) || !reflect.DeepEqual(results[0].Movers, results[1].Movers) {
			t.Fatalf("a refused response changes the set:\n%+v\n%+v\n%v\n%v", results[0].Set, results[1].Set, results[0].Movers, results[1].Movers)
		}
	}
}

func TestRound_ALeadingMarketIsNeverLate(t *testing.T) {
	r := randtest.New(t)
	late := 0
	for range randtest.Count(3, 100) {
		markets := 2 + r.IntN(4)
		f := newFair(rand.New(rand.NewPCG(r.Uint64(), 1)), markets, 1200)
		leader := r.IntN(markets)
		past := [][]money.Micro{}
		for run := range 10 {
			past = append(past, slices.Clone(f.quotes[leader]))
			res := f.round(t, func(market int, resp *Response) *Response {
				if market == leader {
					return resp
				}
				q := past[max(0, run-2)]
				own := make([]money.Micro, len(q))
				for i := range q {
					own[i] = cents(float64(q[i]) / 1e6 * f.levels[market] / f.levels[leader])
				}
				return f.response(own)
			})
			for k, o := range res.Markets {
				if k == leader && o.Late {
					t.Fatalf("run %d: the leader of %d markets is late", run, markets)
				}
				if o.Late {
					late++
				}
			}
			f.now = f.now.Add(12 * time.Hour)
			f.move(0.3, 0.4)
		}
	}
	if late == 0 {
		t.Error("no follower was found to be late")
	}
}

func TestRound_ALevelSetIsShiftedSoThatANewMarketMovesNoPrice(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(3, 1)), 5, 800)
	f.levels[4] = 3
	for i := range f.quotes[4] {
		f.quotes[4][i] *= 2
	}
	silent := func(market int, resp *Response) *Response {
		if market == 4 {
			return nil
		}
		return resp
	}
	var before Result
	for range 4 {
		before = f.round(t, silent)
		f.now = f.now.Add(12 * time.Hour)
	}
	after := f.round(t, nil)
	if o := after.Markets[4]; o.Refusal != nil || !o.State.Levelled {
		t.Fatalf("the new market is refused: %v", o.Refusal)
	}
	for id := int64(1); id <= 4; id++ {
		a, b := before.Set.Market(id).Level, after.Set.Market(id).Level
		if abs(a-b) > logOne/50 {
			t.Errorf("market %d: level %d becomes %d", id, a, b)
		}
	}
}

func TestRound_FailedMarketsDoNotMoveTheLevelsOfTheOthers(t *testing.T) {
	for left := 1; left <= 4; left++ {
		f := newFair(rand.New(rand.NewPCG(4, 1)), 5, 800)
		for i := range f.quotes[0] { // a market whose level depends on the price
			if f.quotes[0][i] > 3*money.Scale {
				f.quotes[0][i] = cents(float64(f.quotes[0][i]) / 1e6 * 1.4)
			}
		}
		before := f.round(t, nil)
		f.now = f.now.Add(25 * time.Hour) // the others' last responses are too old
		after := f.round(t, func(market int, resp *Response) *Response {
			if market >= left {
				return nil
			}
			return resp
		})
		for id := int64(1); id <= int64(left); id++ {
			a, b := before.Set.Market(id), after.Set.Market(id)
			for band := range a.Bands {
				if abs(a.Bands[band]-b.Bands[band]) > logOne/33 {
					t.Errorf("%d of 5 markets left: level of market %d in band %d is %d, was %d", left, id, band, b.Bands[band], a.Bands[band])
				}
			}
		}
	}
}

func TestRound_RefusesWhatPricingSays(t *testing.T) {
	type change func(f *fair, q []money.Micro) []money.Micro
	times := func(x float64) change {
		return func(_ *fair, q []money.Micro) []money.Micro {
			out := make([]money.Micro, len(q))
			for i := range q {
				out[i] = cents(float64(q[i]) / 1e6 * x)
			}
			return out
		}
	}
	shuffle := func(f *fair, q []money.Micro) []money.Micro {
		out := slices.Clone(q)
		f.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	constant := func(_ *fair, q []money.Micro) []money.Micro {
		out := make([]money.Micro, len(q))
		for i := range out {
			out[i] = money.Scale
		}
		return out
	}
	half := func(_ *fair, q []money.Micro) []money.Micro {
		out := slices.Clone(q)
		clear(out[:len(out)*3/5])
		return out
	}
	for _, tt := range []struct {
		name    string
		markets int
		first   bool
		change  change
		want    Anomaly
	}{
		{"half of the names", 1, false, half, FewNames},
		{"one value", 1, false, constant, OneValue},
		{"another currency", 1, false, times(7.1), Ratio},
		{"shuffled names", 1, false, shuffle, Dispersion},
		{"a level moved", 3, false, times(1.7), LevelChange},
		{"a first response in another currency", 3, true, times(7.1), FirstLevel},
		{"a first response shuffled", 3, true, shuffle, FirstDispersion},
		{"a first response alone, shuffled", 1, true, shuffle, Wears},
		{"two first responses", 2, true, times(7.1), Contradicted},
	} {
		f := newFair(rand.New(rand.NewPCG(5, 1)), tt.markets, 1500)
		if !tt.first {
			f.run(t, 4)
		}
		res := f.round(t, func(market int, resp *Response) *Response {
			if market == 0 {
				return f.response(tt.change(f, f.quotes[0]))
			}
			return resp
		})
		o := res.Markets[0]
		if o.Refusal == nil || o.Refusal.Anomaly != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, o.Refusal, tt.want)
			continue
		}
		if text := o.Refusal.String(); len(text) < 30 {
			t.Errorf("%s: %q explains nothing", tt.name, text)
		}
		for _, other := range res.Markets[1:] {
			if other.Refusal != nil && tt.want != Contradicted {
				t.Errorf("%s: market %d is refused too: %v", tt.name, other.ID, other.Refusal)
			}
		}
	}
}

func TestRound_RefusesAWeekOldFileAndSlowDrift(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(6, 1)), 1, 1500)
	old := slices.Clone(f.quotes[0])
	f.run(t, 12)
	res := f.round(t, func(int, *Response) *Response { return f.response(old) })
	if o := res.Markets[0]; o.Refusal == nil || o.Refusal.Anomaly != OlderResponse {
		t.Errorf("a file of six days before: %v", o.Refusal)
	}
	f = newFair(rand.New(rand.NewPCG(6, 1)), 1, 1500)
	f.run(t, 4)
	for run := range 10 {
		for i := range f.quotes[0] {
			f.quotes[0][i] = cents(float64(f.quotes[0][i]) / 1e6 * 1.2)
		}
		o := f.round(t, nil).Markets[0]
		f.now = f.now.Add(12 * time.Hour)
		if o.Refusal != nil {
			if o.Refusal.Anomaly != Drift || run < 3 {
				t.Errorf("run %d: %v", run, o.Refusal)
			}
			return
		}
	}
	t.Error("a drift to 6x was followed")
}

func TestRound_AnOperatorCanAcceptARefusedResponse(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(7, 1)), 1, 600)
	f.run(t, 3)
	for i := range f.quotes[0] {
		f.quotes[0][i] *= 3
	}
	if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
		t.Fatal("x3 is not refused")
	}
	f.markets[0].State.AcceptedAt = f.now
	f.now = f.now.Add(time.Hour)
	o := f.round(t, nil).Markets[0]
	if o.Refusal != nil || !o.State.RefusedSince.IsZero() || !o.State.AcceptedAt.IsZero() {
		t.Fatalf("an accepted response is refused: %v, %+v", o.Refusal, o.State)
	}
	// What was kept from before no longer counts: the change was accepted.
	for run := range 20 {
		f.now = f.now.Add(12 * time.Hour)
		f.move(0.06, 0.15)
		if o := f.round(t, nil).Markets[0]; o.Refusal != nil {
			t.Fatalf("run %d after an accepted response is refused: %v", run+1, o.Refusal)
		}
	}
}

func TestRound_QuotesByNameTakePart(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(8, 1)), 4, 600)
	f.run(t, 4)
	res := f.round(t, func(market int, resp *Response) *Response {
		if market == 3 {
			resp.Partial = true
			resp.Points = resp.Points[:150]
		}
		return resp
	})
	if o := res.Markets[3]; o.Refusal != nil || o.Check.Names != 150 || o.Check.J < 0 {
		t.Fatalf("150 of 600 names: %v, %+v", o.Refusal, o.Check)
	}
	f.now = f.now.Add(time.Hour)
	res = f.round(t, func(market int, resp *Response) *Response {
		if market == 3 {
			resp.Partial = true
			resp.Points = resp.Points[:150]
			for i := range resp.Points {
				resp.Points[i].Amount *= 7
			}
		}
		return resp
	})
	if o := res.Markets[3]; o.Refusal == nil || o.Refusal.Anomaly != Ratio {
		t.Fatalf("150 names in another currency: %v", o.Refusal)
	}
}

func BenchmarkRound30000Names10Markets(b *testing.B) {
	f := newFair(rand.New(rand.NewPCG(9, 1)), 10, 30_000)
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

func TestRound_AnAcceptedResponseIsNotRefusedForItsOldLevel(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(7, 2)), 3, 600)
	f.run(t, 3)
	for i := range f.quotes[0] {
		f.quotes[0][i] *= 3
	}
	if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
		t.Fatal("x3 is not refused")
	}
	f.markets[0].State.AcceptedAt = f.now
	for run := range 10 {
		f.now = f.now.Add(time.Hour)
		res := f.round(t, func(market int, resp *Response) *Response {
			if run == 0 && market != 0 {
				return nil // its level cannot be learned in the round that accepts it
			}
			return resp
		})
		for _, o := range res.Markets {
			if o.Refusal != nil {
				t.Fatalf("run %d: market %d is refused: %v", run, o.ID, o.Refusal)
			}
		}
	}
	if !f.markets[0].State.Levelled {
		t.Error("the level of an accepted market is not learned again")
	}
}

// The remembered level stays where the market is, however rarely responses come and
// however long: at half a percent per run in one direction, every market of an
// installation would be refused after some weeks.
func TestRound_TheRememberedLevelOfAQuietMarketStays(t *testing.T) {
	for _, every := range []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		f := newFair(rand.New(rand.NewPCG(8, 1)), 3, 400)
		for run := range 100 {
			for k, o := range f.round(t, nil).Markets {
				if o.Refusal != nil {
					t.Fatalf("every %s, run %d: market %d is refused: %s", every, run, k, o.Refusal)
				}
				if far := abs(o.State.Level - Ln(o.Check.Level) + Ln(money.Scale)); run > 0 && far > log1_5/8 {
					t.Fatalf("every %s, run %d: market %d is remembered at %s, and is at %s", every, run, k, Exp(o.State.Level), o.Check.Level)
				}
			}
			f.now = f.now.Add(every)
			f.move(0.02, 0.05)
		}
	}
}

// Half of the markets that move together prove nothing about the others: three of six
// that raised 20 % of the names by 1.6x made honest markets late, and 100 of 1,000
// prices followed them as ok.
func TestRound_HalfOfTheMarketsDoNotMakeTheOthersLate(t *testing.T) {
	for _, markets := range []int{4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 1)), markets, 1000)
		f.run(t, 6)
		for k := range markets / 2 {
			for i := range f.quotes[k] {
				if i%5 == 0 {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * 1.6)
				}
			}
		}
		for _, o := range f.round(t, nil).Markets {
			if o.Late {
				t.Errorf("of %d markets half moved: market %d is late", markets, o.ID)
			}
		}
	}
}

// Half of the markets rise slowly together. Which half tells the truth cannot be
// known, so no price is ok by then.
func TestRound_MarketsOfWhichHalfMovedAwayAreSuspect(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 2)), markets, 1000)
		f.run(t, 6)
		var last Result
		for range 6 {
			for k := range markets / 2 {
				for i := range f.quotes[k] {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * 1.1)
				}
			}
			last = f.round(t, nil)
		}
		for _, m := range last.Set.Markets {
			if !f.now.Before(m.WideUntil) {
				t.Errorf("of %d markets half moved away: the items of market %d are not suspect", markets, m.ID)
			}
		}
	}
}

// All knives of a market cost a hundred times as much, which is the class's own move
// where there is no other market.
func TestRound_RefusesAClassThatLeavesTheLimitsByItself(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(9, 3)), 1, 2000)
	f.run(t, 4)
	res := f.round(t, func(_ int, resp *Response) *Response {
		for i := range resp.Points {
			if resp.Points[i].Traits.Class == Star {
				resp.Points[i].Amount *= 100
			}
		}
		return resp
	})
	if r := res.Markets[0].Refusal; r == nil || r.Anomaly != Ratio {
		t.Errorf("refused as %v, want %s", r, Ratio)
	}
}

// contradicting returns a change of some markets' responses: every name costs 3.5 times as much
// or a part of that, the same on all of them.
func contradicting(f *fair, is func(market int) bool) func(int, *Response) *Response {
	return func(market int, resp *Response) *Response {
		if !is(market) {
			return resp
		}
		q := slices.Clone(f.quotes[market])
		for i := range q {
			x := 3.5
			if i/5%2 == 0 { // by skin: its wears agree
				x = 1 / x
			}
			q[i] = cents(float64(q[i]) / 1e6 * x)
		}
		return f.response(q)
	}
}

// Of first responses two halves contradict each other. Which half tells the truth
// cannot be known.
func TestRound_FirstResponsesOfTwoEqualCampsAreContested(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 4)), markets, 1000)
		res := f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		for k, o := range res.Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contradicted || (o.Refusal.Rival-o.ID)%2 == 0 {
				t.Errorf("%d markets: market %d: %+v", markets, o.ID, o.Refusal)
			}
			if k == 0 {
				f.markets[k].State.AcceptedAt = f.now
			}
		}
		// An operator's acceptance of one is that of its camp, and as long as the others
		// contradict it, no price is ok.
		for range 3 {
			f.now = f.now.Add(12 * time.Hour)
			res = f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		}
		for k, o := range res.Markets {
			if k%2 == 0 && o.Refusal != nil {
				t.Errorf("%d markets: market %d agrees with the accepted one: %v", markets, o.ID, o.Refusal)
			}
			if k%2 == 1 && o.Refusal == nil {
				t.Errorf("%d markets: market %d contradicts the accepted one", markets, o.ID)
			}
			if markets > 2 && k%2 == 0 && !f.now.Before(res.Set.Market(o.ID).WideUntil) {
				t.Errorf("%d markets: the items of market %d are not suspect", markets, o.ID)
			}
		}
	}
}

// Who accepts both sides of a contradiction has not said which is right: between them
// there is no price.
func TestRound_AcceptingBothCampsAcceptsNone(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 6)), markets, 1000)
		quotes := contradicting(f, func(market int) bool { return market%2 == 0 })
		f.round(t, quotes)
		for k := range f.markets {
			f.markets[k].State.AcceptedAt = f.now
		}
		f.now = f.now.Add(time.Hour)
		for _, o := range f.round(t, quotes).Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contradicted {
				t.Errorf("%d markets: market %d: %+v", markets, o.ID, o.Refusal)
			}
		}
		f.markets[0].State.AcceptedAt = f.now
		f.now = f.now.Add(time.Hour)
		f.round(t, quotes)
		f.now = f.now.Add(12 * time.Hour)
		for k, o := range f.round(t, quotes).Markets {
			if good := o.Refusal == nil; good != (k%2 == 0) {
				t.Errorf("%d markets: market %d after one was accepted: %+v", markets, o.ID, o.Refusal)
			}
		}
	}
}

// What is known may have been wrong from the beginning. New markets that agree with
// each other show it.
func TestRound_NewMarketsThatContradictTheKnownOnesMakeThemSuspect(t *testing.T) {
	for _, tt := range []struct{ known, joining int }{{1, 2}, {2, 2}, {2, 4}, {3, 3}} {
		f := newFair(rand.New(rand.NewPCG(9, 5)), tt.known+tt.joining, 1000)
		wrong := contradicting(f, func(market int) bool { return market < tt.known })
		joined := false
		change := func(market int, resp *Response) *Response {
			if market >= tt.known && !joined {
				return nil
			}
			return wrong(market, resp)
		}
		for range 4 {
			f.round(t, change)
			f.now = f.now.Add(12 * time.Hour)
		}
		joined = true
		for run := range 4 {
			res := f.round(t, change)
			for k, o := range res.Markets {
				if k < tt.known && run < 2 && !f.now.Before(res.Set.Market(o.ID).WideUntil) {
					t.Errorf("%v: run %d: the items of market %d are not suspect", tt, run, o.ID)
				}
				if contested := k >= tt.known && tt.known == tt.joining; contested != (o.Refusal != nil && o.Refusal.Anomaly == Contradicted) {
					t.Errorf("%v: run %d: market %d: %v", tt, run, o.ID, o.Refusal)
				}
			}
			f.now = f.now.Add(12 * time.Hour)
		}
	}
	f := newFair(rand.New(rand.NewPCG(9, 5)), 5, 1000)
	wrong := contradicting(f, func(market int) bool { return market > 2 })
	for run := range 5 {
		res := f.round(t, func(market int, resp *Response) *Response {
			if market > 2 && run < 3 {
				return nil
			}
			return wrong(market, resp)
		})
		for k, o := range res.Markets {
			if k > 2 && run >= 3 && o.Refusal == nil {
				t.Errorf("market %d contradicts three known ones and is not refused", o.ID)
			}
			if f.now.Before(o.State.WideUntil) {
				t.Errorf("run %d: two new markets make the items of three known ones suspect", run)
			}
		}
		f.now = f.now.Add(12 * time.Hour)
	}
}

// Of some names half of the quotes move away over some runs, and the others stand still.
func TestRound_NamesThatHalfOfTheirQuotesLeftAreSuspect(t *testing.T) {
	for _, tt := range []struct{ markets, moving, back int }{{2, 1, 0}, {4, 2, 0}, {5, 3, 0}, {5, 2, 0}, {6, 1, 0}, {2, 1, 1}} {
		f := newFair(rand.New(rand.NewPCG(9, 6)), tt.markets, 1000)
		const left = 30
		times := func(x float64) {
			for k := range tt.moving {
				for i := range left {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * x)
				}
			}
		}
		if tt.back > 0 { // an absurd price, which then returns to the other market's
			times(2)
		}
		f.run(t, 6)
		var res Result
		for range 4 {
			if tt.back > 0 {
				times(1 / math.Pow(2, 0.25))
			} else {
				times(1.1)
			}
			res = f.round(t, nil)
			f.now = f.now.Add(12 * time.Hour)
		}
		want := tt.back == 0 && 2*tt.moving >= tt.markets
		p, suspect, others := NewPricer(usd(), res.Set), 0, 0
		for i := range f.names {
			var quotes []Quote
			for k := range f.markets {
				quotes = append(quotes, Quote{Provider: "s", Market: strconv.Itoa(k), ID: f.markets[k].ID, Currency: "USD", Ask: f.quotes[k][i], Sales: -1, FetchedAt: f.now})
			}
			res.Movers.Note(uint64(i), quotes)
			var e Priced
			p.Price(f.now, ClassOf(f.names[i]), quotes, State{}, References{}, &e)
			switch {
			case f.now.After(e.State.SuspectUntil):
			case i < left:
				suspect++
			default:
				others++
			}
		}
		if want != (suspect > left/2) || !want && suspect > left/6 || others > 20 {
			t.Errorf("%+v: %d of %d names and %d others are suspect", tt, suspect, left, others)
		}
	}
}

// An acceptance is for the response that the operator saw: a store that still shows its
// time does not accept what is refused later.
func TestRound_AnAcceptanceIsNotUsedForALaterRefusal(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(7, 3)), 1, 600)
	f.run(t, 3)
	times := func(n, d money.Micro) {
		for i := range f.quotes[0] {
			f.quotes[0][i] = f.quotes[0][i] * n / d
		}
	}
	times(3, 1)
	if f.round(t, nil).Markets[0].Refusal == nil {
		t.Fatal("x3 is not refused")
	}
	accepted := f.now
	f.markets[0].State.AcceptedAt = accepted
	f.now = f.now.Add(time.Hour)
	if o := f.round(t, nil).Markets[0]; o.Refusal != nil {
		t.Fatalf("an accepted response is refused: %v", o.Refusal)
	}
	f.markets[0].State.AcceptedAt = accepted // as stored with the market's file
	times(1, 3)
	for run := range 3 {
		f.now = f.now.Add(time.Hour)
		if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
			t.Fatalf("run %d: a later response is accepted without an operator", run)
		}
	}
}

// A third market that shares no names with the others must not keep these from being
// compared with each other.
func TestRound_LearnsLevelsBesideAMarketThatSharesNoNames(t *testing.T) {
	f := newFair(rand.New(rand.NewPCG(9, 7)), 3, 1000)
	var res Result
	for range 2 {
		res = f.round(t, func(market int, resp *Response) *Response {
			switch market {
			case 1:
				for i := range resp.Points {
					resp.Points[i].Amount = resp.Points[i].Amount * 3 / 2
				}
			case 2:
				resp.Points = resp.Points[:300]
				for i := range resp.Points {
					resp.Points[i].Key += 1 << 40
				}
			}
			return resp
		})
		f.now = f.now.Add(12 * time.Hour)
	}
	var apart []Log
	for i := range f.quotes[0] {
		if was, is := f.quotes[0][i], f.quotes[1][i]; was > 0 && is > 0 {
			apart = append(apart, Ln(is*3/2)-Ln(was))
		}
	}
	a, b := res.Set.Market(res.Markets[0].ID), res.Set.Market(res.Markets[1].ID)
	if want := middleOf(apart); !a.Known || !b.Known || abs(b.Level-a.Level-want) > logOne/50 {
		t.Errorf("levels %v and %v, want %v apart", a.Level, b.Level, want)
	}
	if c := res.Set.Market(res.Markets[2].ID); c.Known {
		t.Errorf("a market that shares no names has the level %v", c.Level)
	}
}

// A clock that was set forward and back leaves times far ahead, which end nothing.
func TestPending_OnlyTimesThatCanHaveBeenSet(t *testing.T) {
	for until, want := range map[time.Duration]bool{0: false, time.Second: true, suspectFor: true, suspectFor + time.Second: false, 400 * 24 * time.Hour: false, -time.Hour: false} {
		if got := pending(noon, noon.Add(until), suspectFor); got != want {
			t.Errorf("%v ahead: %v, want %v", until, got, want)
		}
	}
}
