package exchange

import (
	"maps"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
)

func TestRateSet_StoresEqualRatesOnce(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		store := func(rates pricing.Rates) (id int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				id, err = RateSet(tx, rates)
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
		first, second := store(was), store(then)
		f.Is("id of no rates", store(nil), int64(0))
		f.Is("id of the same rates", store(was), first)
		f.Is("other rates have another id", first != second, true)
		for id, want := range map[int64]pricing.Rates{0: {}, first: was, second: then, store(many): many} {
			got, err := ReadRates(f.Context(), f.DB, id)
			f.Must(err)
			f.Is("stored rates are equal", maps.Equal(got, want), true)
		}
	})
}

func TestClaimRateSource_OnlyOneCallerSucceeds(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		state := func() State {
			f.Helper()
			s, err := storedRates(f.Context(), f.DB, "ecb")
			f.Must(err)
			return s
		}
		claim := func(was, next time.Time) bool {
			f.Helper()
			claimed, err := claimRateSource(f.Context(), f.DB, "ecb", was, next)
			f.Must(err)
			return claimed
		}
		none := state()
		f.Is("number of rates before the first query", len(none.Rates), 0)
		f.Is("the source is due", none.DueAt.IsZero(), true)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		f.Is("first claim", claim(none.DueAt, now), true)
		f.Is("second claim", claim(none.DueAt, now.Add(time.Second)), false)
		f.Is("due", state().DueAt, now)

		stored := State{
			Rates:  pricing.Rates{"EUR": {Value: 1_083_400_000_000, Date: now.Truncate(24 * time.Hour)}},
			ReadAt: now, DueAt: now.Add(time.Hour), LastError: "a jump", LastErrorAt: now.Add(time.Minute),
		}
		f.Must(putRateSource(f.Context(), f.DB, "ecb", stored))
		got := state()
		f.Is("stored rates are equal", maps.Equal(got.Rates, stored.Rates), true)
		f.Is("ReadAt", got.ReadAt, stored.ReadAt)
		f.Is("DueAt", got.DueAt, stored.DueAt)
		f.Is("LastError", got.LastError, stored.LastError)
		f.Is("LastErrorAt", got.LastErrorAt, stored.LastErrorAt)
		f.Is("first claim when due again", claim(stored.DueAt, now.Add(2*time.Hour)), true)
		f.Is("second claim", claim(stored.DueAt, now.Add(2*time.Hour)), false)
	})
}
