package refresh_test

import (
	"slices"
	"strings"
	"testing"

	"assay/internal/money"
	"assay/internal/refresh"
)

// quarantined lists the markets in quarantine, with the reason.
func (w *world) quarantined() map[string]string {
	states, err := w.store.MarketStates(w.tb.Context())
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

func TestRule7_OfFirstAnswersTheMajorityIsTaken(t *testing.T) {
	list := names("Item", 300)
	for _, c := range []struct {
		markets []string
		sick    []string
	}{
		{[]string{"a", "b", "c"}, []string{"b"}},
		{[]string{"a", "b", "c"}, []string{"a"}},
		{[]string{"a", "b", "c", "d"}, []string{"d"}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "d"}},
	} {
		for _, cents := range []money.Micro{units(1000), units(10) / 100} {
			s := bulk("alpha", list, c.markets...)
			s.price = func(market, _ string) money.Micro {
				if slices.Contains(c.sick, market) {
					return cents
				}
				return units(10)
			}
			w := newWorld(t, s)
			w.push("u", 730, list...)
			w.forget()
			j := w.run(false)
			equal(t, "state", j.State, refresh.Finished)
			equal(t, "updated", j.Counts.Updated, 300)
			equal(t, "average", w.named(list[0]).Average, units(10))
			got := w.quarantined()
			equal(t, "quarantined", len(got), len(c.sick))
			for _, m := range c.sick {
				if !strings.Contains(got[m], "times what they should be") {
					t.Errorf("%s of %v: %q", m, c.markets, got[m])
				}
			}
			w.checkIdle()
			w.stop()
		}
	}
}

func TestRule7_OfTwoFirstAnswersThatDisagreeTheOperatorChooses(t *testing.T) {
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
	w.forget()
	j := w.run(false)
	equal(t, "state", j.State, refresh.Failed)
	equal(t, "price", w.named(list[0]).Price, 0)
	held := w.quarantined()
	equal(t, "of a", held["a"], "alpha: a: quarantined: prices are 0.01 times those of b, at the median of 300 names, and no majority tells which is right: accept the right one")
	equal(t, "of b", held["b"], "alpha: b: quarantined: prices are 100 times those of a, at the median of 300 names, and no majority tells which is right: accept the right one")

	if err := w.engine.AcceptSource(t.Context(), "alpha", "c"); err == nil {
		t.Error("accepted a market that is none")
	}
	must(t, w.engine.AcceptSource(t.Context(), "alpha", "a"))
	if err := w.engine.AcceptSource(t.Context(), "alpha", "a"); err == nil {
		t.Error("accepted twice")
	}
	w.run(true)
	equal(t, "average", w.named(list[0]).Average, units(10))
	equal(t, "quarantined", len(w.quarantined()), 1)
	cents = 1
	w.run(true)
	equal(t, "quarantined when it is well", len(w.quarantined()), 0)
	equal(t, "markets", w.named(list[0]).Markets, 2)
	w.checkIdle()
}

func TestRule7_OneMarketsWordDoesNotOutvoteTwoNewOnes(t *testing.T) {
	list := names("Item", 300)
	sick, good := bulk("alpha", list, "a"), bulk("beta", list, "b", "c")
	sick.price = func(string, string) money.Micro { return units(1000) }
	w := newWorld(t, sick)
	w.push("u", 730, list...)
	w.forget()
	w.run(false) // nobody is there to contradict it
	w.sources = append(w.sources, good)
	w.restart()
	w.run(true)
	equal(t, "quarantined", len(w.quarantined()), 0)
	equal(t, "price", w.named(list[0]).Price, units(10))
	w.checkIdle()
}
