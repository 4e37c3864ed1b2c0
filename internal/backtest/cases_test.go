package backtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// These tests reproduce the faults of the first pricing method with the real prices (see
// docs/adr/0021-consensus.md):
//
//	One of six markets asks 1,438.168 for a graffiti:
//	  TestCase_AbsurdAskDoesNotChangeThePrice
//	The prices of all ★ items fell by 41 % overnight:
//	  TestCase_FallOfAClassIsAcceptedImmediately
//	Quotes of 0.03 and 1,438 gave 719:
//	  TestCase_TwoConflictingQuotesAreNotAveraged
//	An alternating price was held for 30 days:
//	  TestCase_AlternatingPriceIsReleased
//	A price that grew by a factor of 1.9 per run was accepted up to a factor of 170:
//	  TestCase_MarketThatGrowsInEachRunIsRefused
//	  TestCase_ItemThatGrowsOnOneMarketIsNotOK

// units converts an amount to millionths.
func units(v float64) money.Micro { return money.Micro(math.Round(v * money.Scale)) }

// simTest is a Sim with the names under test and some filler names. The prices of the
// filler names change a little in each run, like those of a real market.
type simTest struct {
	t       *testing.T
	sim     *Sim
	rand    *rand.Rand
	filler  []Quotes
	names   []string
	run     int
	policy  pricing.Policy
	markets int
}

const fillerNames = 400

func newSimTest(t *testing.T, markets int, policy pricing.Policy, names ...string) *simTest {
	t.Helper()
	policy.Currency = "USD"
	s := &simTest{t: t, names: names, rand: rand.New(rand.NewPCG(1, 2)), markets: markets, policy: policy}
	all := append([]string(nil), names...)
	for i := range fillerNames {
		all = append(all, fmt.Sprintf("Sticker | Filler %d", i))
	}
	var infos []MarketInfo
	for k := range markets {
		infos = append(infos, MarketInfo{fmt.Sprintf("m%d", k), "USD"})
		s.filler = append(s.filler, make(Quotes, fillerNames))
	}
	for i := range fillerNames {
		p := math.Exp(4 * s.rand.NormFloat64())
		for k := range markets {
			s.filler[k][i] = scaled(units(max(0.11, p)), math.Exp(0.05*s.rand.NormFloat64()))
		}
	}
	s.sim = NewSim(all, infos, policy)
	return s
}

// quote performs a run 12 hours after the previous one. The arguments are the quotes of the
// names under test, by market. A market with nil quotes does not respond. If frozen is
// true, the prices of the filler names do not change.
func (s *simTest) quote(frozen bool, quotes ...[]float64) *Outcome {
	s.t.Helper()
	responses := make([]Quotes, s.markets)
	for k := range responses {
		if k >= len(quotes) || quotes[k] == nil {
			continue
		}
		q := make(Quotes, 0, len(s.sim.names))
		for _, v := range quotes[k] {
			q = append(q, units(v))
		}
		if !frozen {
			for range fillerNames / 20 {
				i := s.rand.IntN(fillerNames)
				s.filler[k][i] = scaled(s.filler[k][i], math.Exp(0.05*s.rand.NormFloat64()))
			}
		}
		responses[k] = append(q, s.filler[k]...)
	}
	o, err := s.sim.Run(epoch().Add(time.Duration(s.run)*step), responses)
	if err != nil {
		s.t.Fatal(err)
	}
	s.run++
	return o
}

func TestCase_AbsurdAskDoesNotChangeThePrice(t *testing.T) {
	d := realData(t, "csgo_6market_2020-05_usd.csv.gz", func(column string) (string, string) { return "2020-05-15", column }, 1)
	l := &lab{ctx: t.Context(), data: d, opts: Options{Policy: pricing.Policy{Currency: "USD"}}}
	s, err := l.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	const graffiti, rifle = 1438.168, 143816.727 // absurd asks of one market in dollars
	within := map[string][2]float64{             // range of the asks of the other markets
		"Sealed Graffiti | Fart (Bazooka Pink)":        {0.02, 0.035},
		"Sealed Graffiti | Bling (Monster Purple)":     {0.02, 0.035},
		"Sealed Graffiti | Dizzy (Tracer Yellow)":      {0.03, 0.06},
		"Sealed Graffiti | Smarmy (SWAT Blue)":         {0.04, 0.1},
		"Sealed Graffiti | Hop (Blood Red)":            {0.05, 0.1},
		"StatTrak™ M4A1-S | Player Two (Field-Tested)": {95, 113},
	}
	absurdQuotes := 0
	for i, name := range d.Names {
		absurd := false
		for _, q := range d.Quotes[0] {
			absurd = absurd || q[i] == units(graffiti) || q[i] == units(rifle)
		}
		if !absurd {
			continue
		}
		absurdQuotes++
		it, want := s.first.Items[i], within[name]
		if it.Price < units(want[0]) || it.Price > units(want[1]) {
			t.Errorf("%s: got price %s (%s), want %v to %v", name, it.Price, it.Status, want[0], want[1])
		}
	}
	if absurdQuotes != len(within) {
		t.Errorf("got %d names with an absurd ask, want %d", absurdQuotes, len(within))
	}
}

func TestCase_TwoConflictingQuotesAreNotAveraged(t *testing.T) {
	const name = "Sealed Graffiti | Fart (Bazooka Pink)"
	fresh := newSimTest(t, 2, pricing.Policy{}, name)
	if it := fresh.quote(false, []float64{0.03}, []float64{1438}).Items[0]; it.Status != pricing.Disputed || it.Price > units(0.04) {
		t.Errorf("without a last price: got %s, %s, want about 0.03, disputed", it.Price, it.Status)
	}
	known := newSimTest(t, 2, pricing.Policy{}, name)
	for range 3 {
		known.quote(false, []float64{1438}, []float64{1400})
	}
	if it := known.quote(false, []float64{0.03}, []float64{1438}).Items[0]; it.Status != pricing.Disputed || it.Price < units(1300) {
		t.Errorf("with a last price of 1,400: got %s, %s, want about 1,438, disputed", it.Price, it.Status)
	}
}

func TestCase_FallOfAClassIsAcceptedImmediately(t *testing.T) {
	var names []string
	var before, after []float64
	for i := range 150 {
		names = append(names, fmt.Sprintf("★ Knife %d", i))
		before, after = append(before, 100+float64(i)), append(after, (100+float64(i))*0.59)
	}
	after[7] = before[7] * 0.35 // a factor above 2, but below 2 relative to its class
	for _, markets := range []int{1, 3} {
		s := newSimTest(t, markets, pricing.Policy{}, names...)
		same := func(q []float64) (out [][]float64) {
			for range markets {
				out = append(out, q)
			}
			return out
		}
		for range 8 {
			s.quote(false, same(before)...)
		}
		o := s.quote(false, same(after)...)
		for _, m := range o.Markets {
			if m.Refusal != nil {
				t.Fatalf("got the refusal %s, want none", m.Refusal)
			}
		}
		for i := range names {
			if it := o.Items[i]; math.Abs(float64(it.Price)/float64(units(after[i]))-1) > 0.1 {
				t.Fatalf("%d markets: %s: got price %s, want %v", markets, names[i], it.Price, after[i])
			}
		}
	}
}

func TestCase_AlternatingPriceIsReleased(t *testing.T) {
	s := newSimTest(t, 1, pricing.Policy{}, "Sticker | Alternating")
	for range 3 {
		s.quote(false, []float64{1})
	}
	const days = 30
	for i := range 2 * days {
		quoted := []float64{3, 4.5}[i%2]
		it := s.quote(false, []float64{quoted}).Items[0]
		switch want := units(quoted); {
		case i == 0 && (it.Price != units(1) || it.Status != pricing.Suspect):
			t.Errorf("first changed price: got %s, %s, want 1, suspect", it.Price, it.Status)
		case i == 1 && (it.Price != units(3) || it.Status != pricing.Suspect):
			t.Errorf("second changed price: got %s, %s, want the less extreme 3, suspect", it.Price, it.Status)
		case i > 1 && it.Price != want:
			t.Fatalf("run %d: got %s, want %s", i, it.Price, want)
		}
	}
}

func TestCase_UnchangedResponseDoesNotReleaseAPrice(t *testing.T) {
	s := newSimTest(t, 1, pricing.Policy{}, "Sticker | Held")
	for range 3 {
		s.quote(false, []float64{1})
	}
	s.quote(false, []float64{4})
	for range 10 {
		if it := s.quote(true, []float64{4}).Items[0]; it.Price != units(1) || it.Decision != pricing.HeldBack {
			t.Fatalf("got price %s, decision %s; want 1, held", it.Price, it.Decision)
		}
	}
	if it := s.quote(false, []float64{3.5}).Items[0]; it.Price != units(3.5) || it.Decision != pricing.Released {
		t.Fatalf("got price %s, decision %s; want 3.5, released", it.Price, it.Decision)
	}
}

func TestCase_LargeRiseOnOneMarketNeedsTwoChangedResponsesInADay(t *testing.T) {
	s := newSimTest(t, 1, pricing.Policy{}, "Sticker | Pumped")
	for range 3 {
		s.quote(false, []float64{1})
	}
	for i, want := range []float64{1, 1, 9} {
		it := s.quote(false, []float64{9 + float64(i)}).Items[0]
		if it.Price != units(want) || it.Status != pricing.Suspect {
			t.Fatalf("run %d: got %s, %s, want %v, suspect", i, it.Price, it.Status, want)
		}
	}
	for range 50 { // 25 days
		if it := s.quote(false, []float64{9}).Items[0]; it.Status != pricing.Suspect {
			t.Fatalf("within 30 days after the rise: got %s, want suspect", it.Status)
		}
	}
}

func TestCase_MarketThatGrowsInEachRunIsRefused(t *testing.T) {
	for _, factor := range []float64{1.5, 1.9} {
		s := newSimTest(t, 1, pricing.Policy{}, "Sticker | Drifting")
		for range 6 {
			s.quote(false, []float64{1})
		}
		price, last := 1.0, money.Micro(0)
		for range 10 {
			price *= factor
			for i := range s.filler[0] {
				s.filler[0][i] = scaled(s.filler[0][i], factor)
			}
			it := s.quote(false, []float64{price}).Items[0]
			if last = it.Price; it.Status == pricing.OK {
				t.Errorf("factor %v per run: got %s with status ok, want another status", factor, it.Price)
			}
		}
		if last > units(2) {
			t.Errorf("factor %v per run: got price %s, want at most 2", factor, last)
		}
	}
}

// The quote of one item may really grow this fast. The estimated price changes only with changed
// responses, stays below the quote, and never has status ok.
func TestCase_ItemThatGrowsOnOneMarketIsNotOK(t *testing.T) {
	const factor = 1.9
	s := newSimTest(t, 1, pricing.Policy{}, "Sticker | Drifting")
	for range 6 {
		s.quote(false, []float64{1})
	}
	price := 1.0
	for run := range 8 { // up to a factor of 170
		price *= factor
		it := s.quote(false, []float64{price}).Items[0]
		if it.Status == pricing.OK || (run > 0 && it.Status != pricing.Suspect) {
			t.Errorf("run %d: got %s with status %s, want suspect", run, it.Price, it.Status)
		}
		if run > 0 && it.Price > units(price/factor) {
			t.Errorf("run %d: got %s, want at most %v for the quote %v", run, it.Price, price/factor, price)
		}
	}
	for range 10 { // an unchanged response is not further evidence
		before := s.quote(true, []float64{price}).Items[0]
		if after := s.quote(true, []float64{price}).Items[0]; after.Price != before.Price {
			t.Errorf("after an unchanged response: got %s, want %s", after.Price, before.Price)
		}
	}
}

func TestCase_RiseOnTwoMarketsIsAcceptedUnlessTheGuardHolds(t *testing.T) {
	for guard, want := range map[pricing.Guard]pricing.Decision{pricing.Flag: pricing.TakenAtOnce, pricing.Hold: pricing.HeldBack} {
		s := newSimTest(t, 3, pricing.Policy{Guard: guard}, "Sticker | Rising")
		for range 4 {
			s.quote(false, []float64{1}, []float64{1.1}, []float64{0.95})
		}
		it := s.quote(false, []float64{3}, []float64{3.2}, []float64{0.95}).Items[0]
		if it.Decision != want || it.Status != pricing.Suspect {
			t.Errorf("guard %s: got decision %q, price %s, status %s, want %q, suspect", guard, it.Decision, it.Price, it.Status, want)
		}
	}
}

// All prices of the only market, or of one class, triple between two runs. The response is
// refused. After the operator accepts it, the prices change in the next run. This includes
// items that are not priced in the same run.
func TestCase_AcceptedResponseChangesPricesImmediately(t *testing.T) {
	var names []string
	var before, after []float64
	for i := range 150 {
		names = append(names, fmt.Sprintf("★ Knife %d", i))
		before, after = append(before, 100+float64(i)), append(after, (100+float64(i))*3)
	}
	after[7] = before[7] * 30 // an absurd price
	for _, all := range []bool{true, false} {
		s := newSimTest(t, 1, pricing.Policy{}, names...)
		for range 20 {
			s.quote(false, before)
		}
		if all {
			for i := range s.filler[0] {
				s.filler[0][i] = scaled(s.filler[0][i], 3)
			}
		}
		if o := s.quote(false, after); o.Markets[0].Refusal == nil {
			t.Fatal("response with triple prices: got no refusal, want one")
		}
		s.sim.markets[0].state.AcceptedAt = epoch().Add(time.Duration(s.run) * step)
		unpriced := s.sim.items[3] // restored below, as if the next run did not price the item
		for run := range 4 {
			o := s.quote(run > 0, after)
			if o.Markets[0].Refusal != nil {
				t.Fatalf("accepted response: got the refusal %s, want none", o.Markets[0].Refusal)
			}
			if run == 0 {
				s.sim.items[3] = unpriced
			}
			for i := range names {
				want := units(after[i])
				if i == 7 {
					want = units(before[i])
				}
				if it := o.Items[i]; it.Price != want || (run == 0 && it.Status != pricing.Suspect) {
					t.Fatalf("run %d: %s: got price %s (%s), want %s, suspect", run, names[i], it.Price, it.Status, want)
				}
			}
		}
	}
}
