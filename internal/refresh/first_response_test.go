package refresh_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// quarantined returns the markets in quarantine, with the reason.
func (w *world) quarantined() map[string]string {
	states, err := refresh.MarketStates(w.tb.Context(), w.store)
	must(w.tb, err)
	out := map[string]string{}
	for _, m := range states {
		if m.Quarantine != "" {
			market, _, _ := strings.Cut(strings.TrimPrefix(m.Quarantine, "alpha: "), ":")
			out[market] = m.Quarantine
		}
	}
	return out
}

func TestRule7_MajorityOfFirstResponsesIsAccepted(t *testing.T) {
	list := names("Item", 300)
	for _, c := range []struct {
		markets []string
		failing []string
	}{
		{[]string{"a", "b", "c"}, []string{"b"}},
		{[]string{"a", "b", "c"}, []string{"a"}},
		{[]string{"a", "b", "c", "d"}, []string{"d"}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "d"}},
	} {
		for _, cents := range []money.Micro{units(1000), units(10) / 100} {
			s := bulk("alpha", list, c.markets...)
			s.price = func(market, _ string) money.Micro {
				if slices.Contains(c.failing, market) {
					return cents
				}
				return units(10)
			}
			w := newWorld(t, s)
			w.push("u", 730, list...)
			w.clearMissing()
			j := w.run(false)
			equal(t, "state", j.State, refresh.Finished)
			equal(t, "updated", j.Counts.Updated, 300)
			equal(t, "average", w.named(list[0]).Average, units(10))
			got := w.quarantined()
			equal(t, "markets in quarantine", len(got), len(c.failing))
			for _, m := range c.failing {
				if !strings.Contains(got[m], "times those of the other markets") {
					t.Errorf("market %s of %v: got the quarantine reason %q, want one about the level", m, c.markets, got[m])
				}
			}
			w.checkIdle()
			w.stop()
		}
	}
}

func TestRule7_TwoContradictingFirstResponsesAreQuarantined(t *testing.T) {
	list := names("Item", 300)
	cents := money.Micro(100)
	s := bulk("alpha", list, "a", "b")
	s.price = func(market, _ string) money.Micro {
		if market == "b" {
			return units(10) * cents
		}
		return units(10)
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	j := w.run(false)
	equal(t, "state", j.State, refresh.Failed)
	equal(t, "price", w.named(list[0]).Price, 0)
	held := w.quarantined()
	equal(t, "the quarantine of a", held["a"], "alpha: a: quarantined: first response: b contradicts it, and neither has a majority of the markets: accept the correct one")
	equal(t, "the quarantine of b", held["b"], "alpha: b: quarantined: first response: a contradicts it, and neither has a majority of the markets: accept the correct one")

	if err := w.engine.AcceptProvider(t.Context(), "alpha", "c"); err == nil {
		t.Error("AcceptProvider of an unknown market: got no error, want one")
	}
	must(t, w.engine.AcceptProvider(t.Context(), "alpha", "a"))
	if err := w.engine.AcceptProvider(t.Context(), "alpha", "a"); err == nil {
		t.Error("second AcceptProvider: got no error, want one")
	}
	w.run(true)
	equal(t, "average", w.named(list[0]).Average, units(10))
	equal(t, "markets in quarantine", len(w.quarantined()), 1)
	cents = 1
	w.run(true)
	equal(t, "markets in quarantine", len(w.quarantined()), 0)
	equal(t, "markets", w.named(list[0]).Markets, 2)
	w.checkIdle()
}

// Two new markets quote a hundredth of the price of the only known market. The price must
// not change.
func TestRule7_NewMarketsContradictingAKnownOneAreQuarantined(t *testing.T) {
	list := names("Item", 300)
	known, others := bulk("alpha", list, "a"), bulk("beta", list, "b", "c")
	known.price = func(string, string) money.Micro { return units(1000) }
	w := newWorld(t, known)
	w.push("u", 730, list...)
	w.clearMissing()
	w.run(false) // no other market contradicts the known one
	w.providers = append(w.providers, others)
	w.restart()
	w.run(true)
	const quarantined = `SELECT count(*) FROM market_file WHERE quarantine <> ''`
	equal(t, "markets in quarantine", w.count(quarantined), 2)
	equal(t, "price", w.named(list[0]).Price, units(1000))
	w.checkIdle()
}

// The only market of a game shuffles its names, quotes one price for all names, or drifts
// within its daily limits. Only its own earlier responses contradict it.
func TestRule7_ResponseUnlikeItsPastIsRefused(t *testing.T) {
	list := names("Item", 300)
	usual := func(i int) money.Micro { return units(1) + money.Micro(i)*units(1)/4 }
	for _, c := range []struct {
		name   string
		price  func(i int) money.Micro
		reason string
	}{
		{"shuffled", func(i int) money.Micro { return usual((i*7 + 100) % 300) }, "moved by more than 2× relative to their class"},
		{"one value", func(int) money.Micro { return units(5) }, "have the same price"},
		{"three times the price", func(i int) money.Micro { return 3 * usual(i) }, "prices are 3 times those of the last response"},
		{"half as many names", func(i int) money.Micro { return usual(i) * money.Micro(i%5/3) }, "fewer than half"},
	} {
		t.Run(c.name, func(t *testing.T) {
			price := usual
			s := bulk("alpha", list, "a")
			s.edit = func(q *provider.Quote) bool {
				q.Ask = price(slices.Index(list, q.Name))
				return true
			}
			w := newWorld(t, s)
			w.push("u", 730, list...)
			w.clearMissing()
			w.run(false)
			before := w.named(list[9])
			price = c.price
			for range 3 { // repeating the response does not end the quarantine
				w.clock.Add(7 * time.Hour)
				w.run(false)
				if got := w.quarantined()["a"]; !strings.Contains(got, c.reason) {
					t.Errorf("got the quarantine reason %q, want %q", got, c.reason)
				}
				equal(t, "price", w.named(list[9]).Price, before.Price)
			}
			price = usual
			w.clock.Add(7 * time.Hour)
			w.run(false)
			equal(t, "markets in quarantine", len(w.quarantined()), 0)
			w.checkIdle()
		})
	}
}

// The prices of one of three markets rise by a third each day. The rise of a day is within
// the limits, but the rise of a week is not.
func TestRule7_DriftingMarketIsRefused(t *testing.T) {
	list := names("Item", 300)
	grown := money.Micro(1_000_000)
	s := bulk("alpha", list, "a", "b", "c")
	s.price = func(market, name string) money.Micro {
		price := units(1) + money.Micro(slices.Index(list, name))*units(1)/4
		if market == "c" {
			price = price * grown / 1_000_000
		}
		return price
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	w.run(false)
	for range 7 {
		w.clock.Add(24 * time.Hour)
		grown = grown * 4 / 3
		w.run(true)
	}
	if got := w.quarantined(); len(got) != 1 || got["c"] == "" {
		t.Errorf("got the markets %v in quarantine, want only c", got)
	}
	w.checkIdle()
}
