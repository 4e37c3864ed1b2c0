package storetest

import (
	"maps"
	"time"

	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/pricing"
)

func rateSets(f *fixture) {
	note := func(rates pricing.Rates) (id int64) {
		f.tx(func(tx *db.Tx) (err error) {
			id, err = exchange.RateSet(tx, rates)
			return err
		})
		return id
	}
	day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	was := pricing.Rates{"EUR": {Value: 1_083_400_000_000, Date: day}, "IDR": {Value: 56_003_788, Date: day}}
	then := pricing.Rates{"EUR": {Value: 1_090_000_000_000, Date: day.AddDate(0, 0, 1)}}
	many := pricing.Rates{}
	for i := range 500 {
		many[money.Currency([]byte{'A' + byte(i/26/26), 'A' + byte(i/26%26), 'A' + byte(i%26)})] = pricing.Rate{Value: money.Rate(i + 1), Date: day}
	}
	first, second := note(was), note(then)
	f.is("none", note(nil), int64(0))
	f.is("the same again", note(was), first)
	f.is("others", first != second, true)
	for id, want := range map[int64]pricing.Rates{0: {}, first: was, second: then, note(many): many} {
		got, err := exchange.ReadRates(f.Context(), f.s, id)
		f.must(err)
		f.is("rates", maps.Equal(got, want), true)
	}
}

func ratePlaces(f *fixture) {
	state := func() exchange.State {
		f.Helper()
		s, err := exchange.RatePlace(f.Context(), f.s, "ecb")
		f.must(err)
		return s
	}
	claim := func(was, next time.Time) bool {
		f.Helper()
		claimed, err := exchange.ClaimRatePlace(f.Context(), f.s, "ecb", was, next)
		f.must(err)
		return claimed
	}
	none := state()
	f.is("rates of a place that nobody asked", len(none.Rates), 0)
	f.is("it is due", none.DueAt.IsZero(), true)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.is("one asks it", claim(none.DueAt, now), true)
	f.is("no other one does", claim(none.DueAt, now.Add(time.Second)), false)
	f.is("due", state().DueAt, now)

	told := exchange.State{
		Rates:  pricing.Rates{"EUR": {Value: 1_083_400_000_000, Date: now.Truncate(24 * time.Hour)}},
		ReadAt: now, DueAt: now.Add(time.Hour), LastError: "a jump", LastErrorAt: now.Add(time.Minute),
	}
	f.must(exchange.PutRatePlace(f.Context(), f.s, "ecb", told))
	got := state()
	f.is("rates", maps.Equal(got.Rates, told.Rates), true)
	f.is("read", got.ReadAt, told.ReadAt)
	f.is("due", got.DueAt, told.DueAt)
	f.is("error", got.LastError, told.LastError)
	f.is("when", got.LastErrorAt, told.LastErrorAt)
	f.is("again, one asks it", claim(told.DueAt, now.Add(2*time.Hour)), true)
	f.is("no other one does", claim(told.DueAt, now.Add(2*time.Hour)), false)
}
