package sim

import (
	"math/bits"
	"slices"
	"testing"
)

func testModel(t testing.TB, seed uint64, markets int) *model {
	t.Helper()
	return &model{seed: seed, cat: NewCatalog(), markets: firstMarkets(markets), week: TicksPerWeek, exp: newExponential()}
}

// ask returns a market's ask for the i-th item, or 0 if there is none.
func (m *model) ask(v, i int, tick int64) mil {
	s := m.subject(i)
	r, _ := m.quote(&m.markets[v], &s, tick)
	return r.ask
}

func TestScale_MultipliesByPowerOfTwo(t *testing.T) {
	e := newExponential()
	for _, c := range []struct{ v, x, want int64 }{
		{1000, 0, 1000},
		{1000, one, 2000},
		{1000, -one, 500},
		{1 << 30, one / 2, 1518500250},
		{1000, 20 * one, 1000 << 20},
		{1 << 39, 20 * one, 1 << 59},
		{1000, 40 * one, 1000 << 20},
		{7, -20 * one, 0},
	} {
		if got := e.scale(c.v, c.x); max(got, c.want)-min(got, c.want) > c.want>>20 {
			t.Errorf("scale(%d, %d) = %d, want %d", c.v, c.x, got, c.want)
		}
	}
}

func TestModel_PricesDifferRealisticallyBetweenMarkets(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	var factors []int64 // highest ask divided by lowest ask on six markets, in thousandths
	for i := range m.cat.Len() {
		var low, high mil
		n := 0
		for _, v := range []int{0, 1, 2, 3, 4, 6} {
			if ask := m.ask(v, i, 0); ask > 0 {
				n++
				high = max(high, ask)
				if low == 0 || ask < low {
					low = ask
				}
			}
		}
		if n > 1 {
			factors = append(factors, high*1000/low)
		}
	}
	slices.Sort(factors)
	for _, c := range []struct {
		percent   int
		low, high int64
	}{{50, 1_450, 1_750}, {90, 3_300, 5_200}, {99, 28_000, 80_000}} {
		got := factors[len(factors)*c.percent/100]
		t.Logf("percentile %d of highest/lowest ask: %d/1000", c.percent, got)
		if got < c.low || got > c.high {
			t.Errorf("percentile %d of highest/lowest ask: got %d/1000, want %d to %d", c.percent, got, c.low, c.high)
		}
	}
}

func TestModel_AWeekChanges55To60PercentOfPrices(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	for _, start := range []int64{0, 5 * TicksPerWeek} {
		same, changed, jumped := 0, 0, 0
		for v := range m.markets {
			for i := range m.cat.Len() {
				before, after := m.ask(v, i, start), m.ask(v, i, start+TicksPerWeek)
				switch {
				case before == 0 || after == 0:
				case before == after:
					same++
				default:
					changed++
					if max(before, after) > 5*min(before, after) {
						jumped++
					}
				}
			}
		}
		share := changed * 100 / (same + changed)
		t.Logf("week from tick %d: %d %% of prices changed, %d by a factor above 5", start, share, jumped)
		if share < 55 || share > 60 {
			t.Errorf("got %d %% of prices changed within a week, want 55-60", share)
		}
		if jumped < 110 || jumped > 540 {
			t.Errorf("got %d prices changed by a factor above 5, want 110-540", jumped)
		}
	}
}

func TestModel_ATickChangesFewPrices(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	changed := 0
	for i := range m.cat.Len() {
		if m.ask(0, i, 100) != m.ask(0, i, 101) {
			changed++
		}
	}
	if changed == 0 || changed > m.cat.Len()/20 {
		t.Errorf("got %d of %d prices changed within a tick, want at least one and at most 5 %%", changed, m.cat.Len())
	}
}

func TestModel_MarketsHaveTheirCoverage(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	for v := range m.markets {
		quoted, offered := int64(0), int64(0)
		for i := range m.cat.Len() {
			s := m.subject(i)
			r, ok := m.quote(&m.markets[v], &s, 0)
			if ok {
				quoted++
			}
			if r.ask > 0 {
				offered++
			}
		}
		share := quoted * 1000 / int64(m.cat.Len())
		if want := m.markets[v].coverage; share < want-15 || share > want+15 {
			t.Errorf("%s: got quotes of %d/1000 of all items, want %d", m.markets[v].key, share, want)
		}
		if share := offered * 1000 / quoted; share < 955 || share > 985 {
			t.Errorf("%s: got asks of %d/1000 of the quoted items, want 955 to 985", m.markets[v].key, share)
		}
	}
}

func TestModel_SomeItemsHaveNoSales(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	var none, quoted [31]int64 // numbers of items by window in days
	for i := range m.cat.Len() {
		s := m.subject(i)
		for v := range m.markets {
			r, ok := m.quote(&m.markets[v], &s, 0)
			if !ok || m.markets[v].days == 0 {
				if ok && r.sales != -1 {
					t.Fatalf("%s has no sales window: got %d sales, want -1", m.markets[v].key, r.sales)
				}
				continue
			}
			quoted[m.markets[v].days]++
			if r.sales == 0 {
				none[m.markets[v].days]++
			}
		}
	}
	for _, c := range []struct{ days, low, high int64 }{{7, 90, 130}, {30, 35, 52}} {
		if got := none[c.days] * 1000 / quoted[c.days]; got < c.low || got > c.high {
			t.Errorf("got %d/1000 of items without sales in %d days, want %d to %d", got, c.days, c.low, c.high)
		}
	}
}

func TestModel_QuotesFixturesByTheirTraits(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	for i, f := range fixtures {
		for tick := int64(0); tick < 3*TicksPerWeek; tick += 97 {
			offered, absurdAsks := 0, 0
			for v := range m.markets {
				ask := m.ask(v, i, tick)
				if ask > 0 {
					offered++
				}
				if ask == absurdPrice {
					absurdAsks++
				}
				if f.trait&pinned != 0 && (ask < f.value/3 || ask > f.value*3) {
					t.Fatalf("%s: got the ask %d for %q, want about %d", m.markets[v].key, ask, f.name, f.value)
				}
			}
			switch {
			case f.trait&pinned != 0 && offered != len(m.markets):
				t.Fatalf("tick %d: got %q offered on %d markets, want all", tick, f.name, offered)
			case f.trait&unoffered != 0 && offered != 0:
				t.Fatalf("tick %d: got %q offered on %d markets, want none", tick, f.name, offered)
			case f.trait&absurd != 0 && absurdAsks != 1:
				t.Fatalf("tick %d: got %d absurd asks for %q, want 1", tick, absurdAsks, f.name)
			}
		}
	}
}

func TestModel_ResellerHasTheSameListings(t *testing.T) {
	m := testModel(t, 1, DefaultMarkets)
	shared := 0
	for i := range m.cat.Len() {
		s := m.subject(i)
		a, okA := m.quote(&m.markets[harbor], &s, 7)
		b, okB := m.quote(&m.markets[iris], &s, 7)
		if !okA || !okB {
			continue
		}
		shared++
		if a.listings != b.listings || max(a.ask, b.ask)-min(a.ask, b.ask) > 10 {
			t.Fatalf("item %d: got quotes %+v of harbor and %+v of iris, want the same", i, a, b)
		}
	}
	if shared < m.cat.Len()/2 {
		t.Errorf("got %d items quoted on both markets, want at least half", shared)
	}
}

func TestModel_QuotesAreValid(t *testing.T) {
	m := testModel(t, 1, 40)
	m.cat = m.cat.resize(m.cat.Len() + 5_000)
	for i := 0; i < m.cat.Len(); i += 3 {
		s := m.subject(i)
		for v := range m.markets {
			r, _ := m.quote(&m.markets[v], &s, int64(i))
			step := m.markets[v].style.step()
			if r.ask < 0 || r.bid < 0 || r.sale < 0 || r.listings < 0 || r.sales < -1 || r.ask > 1e10 ||
				r.ask%step != 0 || r.bid%step != 0 || r.sale%step != 0 || (r.ask == 0) != (r.listings == 0) {
				t.Fatalf("item %d on %s: got quote %+v, want a valid one", i, m.markets[v].key, r)
			}
		}
	}
}

func TestModel_IsDeterminedByItsSeed(t *testing.T) {
	a, b, c := testModel(t, 1, 3), testModel(t, 1, 3), testModel(t, 2, 3)
	differ := 0
	for i := range 1_000 {
		for v := range 3 {
			if a.ask(v, i, 5) != b.ask(v, i, 5) {
				t.Fatalf("item %d: got different asks from two models of the same seed, want equal asks", i)
			}
			if a.ask(v, i, 5) != c.ask(v, i, 5) {
				differ++
			}
		}
	}
	if differ < 2_000 {
		t.Errorf("another seed: got %d of 3,000 asks changed, want at least 2,000", differ)
	}
}

func TestGauss_IsNormallyDistributed(t *testing.T) {
	rng := stream(1)
	const n = 100_000
	var sum, squares, inner int64
	for range n {
		g := gauss(rng.next())
		sum += g
		squares += g * g >> 16
		if g > -one && g < one {
			inner++
		}
	}
	if mean := sum / n; mean < -one/100 || mean > one/100 {
		t.Errorf("got mean %d, want 0", mean)
	}
	if variance := squares / n; variance < one*98/100 || variance > one*102/100 {
		t.Errorf("got variance %d, want %d", variance, one)
	}
	if share := inner * 100 / n; share < 65 || share > 71 {
		t.Errorf("got %d %% within one standard deviation, want 68", share)
	}
	if n := bits.OnesCount64(mix(1) ^ mix(2)); n < 16 {
		t.Errorf("mix(1) and mix(2): got %d different bits, want at least 16", n)
	}
}
