package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

func TestGuard_TakesAMoveAtOnceThatTwoMarketsMade(t *testing.T) {
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
	equal(t, "moved", move.Moved, 3)
	equal(t, "suspect until", state.SuspectUntil, w.clock.Now().Add(24*time.Hour))
	w.checkIdle()
}
