package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

func TestGuard_AcceptsMoveOfTwoMarkets(t *testing.T) {
	list := names("Item", 150)
	moved := money.Micro(1)
	s := bulk("alpha", list, "a1", "a2", "a3")
	s.price = func(_, name string) money.Micro {
		if name == list[7] {
			return units(10) * moved
		}
		return units(10)
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	for range 2 {
		w.clock.Add(7 * time.Hour)
		w.run(false)
	}
	moved = 3
	w.clock.Add(7 * time.Hour)
	w.run(false)
	i := w.named(list[7])
	equal(t, "price", i.Price, varied(units(30), list[7]))
	equal(t, "status", i.Status, pricing.Suspect)
	var state pricing.State
	move, err := pricing.DecodeGuard(i.Guard, &state)
	must(t, err)
	equal(t, "decision", move.Decision, pricing.TakenAtOnce)
	equal(t, "supporters", move.Supporters, 3)
	equal(t, "moved items", move.Moved, 3)
	equal(t, "the end of the suspicion", state.SuspectUntil, w.clock.Now().Add(24*time.Hour))
	w.checkIdle()
}

// The provider's responses do not state when a quote last changed. Only a different amount
// shows a change.
func TestGuard_UnchangedQuoteByNameReleasesNothing(t *testing.T) {
	const name = "A"
	w, price := quadrupled(t, name)
	w.run(false)
	equal(t, "candidate", w.named(name).Candidate, units(40))
	for range 3 {
		w.clock.Add(time.Hour)
		w.run(true)
		equal(t, "price after the same quote again", w.named(name).Price, units(10))
	}
	*price = units(41)
	w.clock.Add(time.Hour)
	w.run(true)
	equal(t, "price after a different quote", w.named(name).Price, units(40))
	w.checkIdle()
}

// The move of each quote is measured from the previous quote of the same market.
func TestGuard_QuotesByNameSupportTheirOwnMove(t *testing.T) {
	const name = "A"
	price := map[string]money.Micro{"a1": units(10), "a2": units(10), "a3": units(10)}
	s := batch("alpha", 10, []string{name}, "a1", "a2", "a3")
	s.price = func(market, _ string) money.Micro { return price[market] }
	w := newWorld(t, s)
	w.push("u", 730, name)
	w.drain()
	price["a1"], price["a2"] = units(40), units(40)
	w.clock.Add(7 * time.Hour)
	w.run(false)
	i := w.named(name)
	equal(t, "price", i.Price, units(40))
	equal(t, "status", i.Status, pricing.Suspect)
	var state pricing.State
	move, err := pricing.DecodeGuard(i.Guard, &state)
	must(t, err)
	equal(t, "decision", move.Decision, pricing.TakenAtOnce)
	equal(t, "moved items", move.Moved, 2)
	w.checkIdle()
}

func TestValidation_SkipsEqualResponsesWithinAnHour(t *testing.T) {
	list := names("Item", 150)
	price := units(10)
	s := bulk("alpha", list, "a1", "a2", "a3")
	s.price = func(string, string) money.Micro { return price }
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	sets := func() int64 { return w.count(`SELECT count(*) FROM level_set`) }
	before := sets()
	w.clock.Add(time.Minute)
	w.run(true)
	equal(t, "level sets after the same responses", sets(), before)
	equal(t, "jobs with the newest level set", w.count(`SELECT count(*) FROM refresh_level WHERE level_set = (SELECT max(id) FROM level_set)`), 2)
	equal(t, "items with the newest level set", w.count(`SELECT count(*) FROM item WHERE level_set = (SELECT max(id) FROM level_set)`), 150)
	price += units(1)
	w.clock.Add(time.Minute)
	w.run(true)
	equal(t, "level sets after different responses", sets(), before+1)
	w.clock.Add(2 * time.Hour)
	w.run(true)
	equal(t, "level sets after the same responses two hours later", sets(), before+2)
	w.checkIdle()
}

// A changed quote is evidence only if half an hour has passed since the last evidence.
func TestGuard_EarlyChangeReleasesNothing(t *testing.T) {
	const name = "A"
	w, price := quadrupled(t, name)
	w.run(true)
	*price = units(41)
	w.clock.Add(pricing.EvidenceAfter - time.Minute)
	w.run(true)
	equal(t, "price after a change too soon", w.named(name).Price, units(10))
	w.clock.Add(2 * time.Hour)
	w.run(true)
	equal(t, "price after the same quote again", w.named(name).Price, units(10))
	*price = units(39)
	w.clock.Add(time.Minute)
	w.run(true)
	equal(t, "price after a later change", w.named(name).Price, units(39))
	w.checkIdle()
}

func TestGuard_UnchangedBackgroundQuoteReleasesNothing(t *testing.T) {
	const name = "A"
	price := units(10)
	steam := slow("steam", []string{name}, "s1")
	steam.price = func(string, string) money.Micro { return price }
	w := newWorld(t, steam)
	w.limit(steam)
	w.push("u", 730, name)
	w.drain()
	w.clock.Add(30 * time.Second)
	w.drain()
	equal(t, "price", w.named(name).Price, units(10))

	price = units(40)
	reads := func() { // the job uses the earlier quote, and then the background fetch sends a request
		t.Helper()
		w.clock.Add(time.Hour)
		steam.requested()
		w.runFirst(true)
		equal(t, "requests of the background fetch", len(steam.requested()), 1)
	}
	reads()
	equal(t, "candidate before a job", w.named(name).Candidate, 0)
	reads()
	equal(t, "candidate", w.named(name).Candidate, units(40))
	for range 3 {
		reads()
		equal(t, "price after the same quote again", w.named(name).Price, units(10))
		equal(t, "the candidate after the job", w.named(name).Candidate, units(40))
	}
	price = units(41)
	reads()
	equal(t, "price before a job uses the new quote", w.named(name).Price, units(10))
	reads()
	equal(t, "price after a different quote", w.named(name).Price, units(40))
	w.checkIdle()
}

// quadrupled returns a world with one item. Its only market is requested by name. The item
// has a price of 10 units, the market now quotes 40, and the next job holds that price. The
// test can change the quote.
func quadrupled(t *testing.T, name string) (w *world, quote *money.Micro) {
	t.Helper()
	quote = new(units(10))
	s := batch("alpha", 10, []string{name}, "a1")
	s.price = func(string, string) money.Micro { return *quote }
	w = newWorld(t, s)
	w.push("u", 730, name)
	w.drain()
	*quote = units(40)
	w.clock.Add(7 * time.Hour)
	return w, quote
}
