package fee_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/randtest"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
	"assay/internal/wallet/wallettest"
)

// percent returns a set that charges the given basis points.
func percent(tb testing.TB, points int64) *fee.Set {
	tb.Helper()
	return decode(tb, fmt.Sprintf(`{"rules":[],"fallback":{"basisPoints":%d}}`, points))
}

func TestRules_VersionsNeverChange(t *testing.T) { dbtest.Each(t, feeVersions) }

func feeVersions(f *dbtest.Fixture) {
	_, err := fee.ReadActivation(f.Context(), f.DB, 0)
	f.Is("an empty table returns ErrNone", errors.Is(err, fee.ErrNone), true)
	for v := int64(1); v <= 3; v++ {
		f.Tx(func(tx *db.Tx) error {
			f.Must(fee.HoldRules(tx))
			f.Must(fee.AddRules(tx, fee.Activation{At: f.Now, Version: v, Set: percent(f.TB, 100*v), Source: "a", Mark: "m", By: "b"}))
			a, err := fee.Active(tx)
			f.Must(err)
			f.Is("version read in the transaction that stored it", a.Set.Version, v)
			return nil
		})
	}
	active, err := fee.ReadActivation(f.Context(), f.DB, 0)
	f.Must(err)
	f.Is("active version", active.Version, int64(3))
	f.Is("basis points of the active rules", active.Set.Fallback.Tiers[0].BasisPoints, int64(300))
	f.Is("version of the active rules", active.Set.Version, int64(3))
	f.Is("source, mark and operator of the active version", active.Source+active.Mark+active.By, "amb")
	f.Is("the active version has the current time", active.At.Equal(f.Now), true)
	old, err := fee.ReadActivation(f.Context(), f.DB, 1)
	f.Must(err)
	f.Is("basis points of the first version", old.Set.Fallback.Tiers[0].BasisPoints, int64(100))
	_, err = fee.ReadActivation(f.Context(), f.DB, 4)
	f.Is("an unknown version returns ErrNone", errors.Is(err, fee.ErrNone), true)
	list, err := fee.ListActivations(f.Context(), f.DB, 3, 1)
	f.Must(err)
	f.Is("length of the page", len(list), 1)
	f.Is("version on the page", list[0].Version, int64(2))
}

func TestRules_ForgetsARolledBackVersion(t *testing.T) { dbtest.Each(t, feesRolledBack) }

// feesRolledBack looks up a version whose number an earlier transaction used before it rolled back.
func feesRolledBack(f *dbtest.Fixture) {
	failed := errors.New("failed")
	err := f.DB.InTx(f.Context(), func(tx *db.Tx) error {
		f.Must(fee.AddRules(tx, fee.Activation{At: f.Now, Version: 1, Set: percent(f.TB, 9), Source: "a"}))
		_, err := fee.Active(tx)
		f.Must(err)
		return failed
	})
	f.Is("the transaction returns its error", errors.Is(err, failed), true)
	f.Tx(func(tx *db.Tx) error {
		return fee.AddRules(tx, fee.Activation{At: f.Now, Version: 1, Set: percent(f.TB, 5), Source: "a"})
	})
	active, err := fee.ReadActivation(f.Context(), f.DB, 0)
	f.Must(err)
	f.Is("basis points after the failed transaction", active.Set.Fallback.Tiers[0].BasisPoints, int64(5))
}

func TestRules_ActivateOnceUnderConcurrency(t *testing.T) { dbtest.Each(t, feesRace) }

// feesRace calls Begin and then Refresh on many services at the same time.
func feesRace(f *dbtest.Fixture) {
	const many = 8
	service := func(points int64) *fee.Service {
		return feetest.Service(f.DB, wallettest.NewRing(f.TB, "k1"), percent(f.TB, points))
	}
	each := func(do func(i int64) error) {
		f.Helper()
		errs := make([]error, many)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = do(int64(i)) })
		}
		wg.Wait()
		f.Must(errors.Join(errs...))
	}
	each(func(int64) error { return service(1000).Begin(f.Context()) })
	active, err := fee.ReadActivation(f.Context(), f.DB, 0)
	f.Must(err)
	f.Is("version after all instances began", active.Version, int64(1))
	each(func(int64) error {
		_, err := service(1001).Refresh(f.Context(), fee.Request{By: "x"})
		return err
	})
	active, err = fee.ReadActivation(f.Context(), f.DB, 0)
	f.Must(err)
	f.Is("version after all instances refreshed from one source", active.Version, int64(2))
}

func TestRules_QuotesMatchTheirVersion(t *testing.T) { dbtest.Each(t, feeSwaps) }

// feeSwaps activates sets while other goroutines compute quotes. Half of the goroutines compute
// them in transactions. Each quote must match a computation with the stored rules of its version.
func feeSwaps(f *dbtest.Fixture) {
	swaps := randtest.Count(20, 500)
	keys := wallettest.NewRing(f.TB, "k1")
	feetest.Activate(f.TB, f.DB, keys, percent(f.TB, 1))
	pay := fee.Payment{Kind: fee.Sale, Amount: 1_000_000, Currency: "USD", At: f.Now}
	quote := func(inTx bool) (q fee.Quote, err error) {
		if !inTx {
			a, err := fee.ReadActivation(f.Context(), f.DB, 0)
			if err != nil {
				return q, err
			}
			return fee.Compute(a.Set, pay)
		}
		err = f.DB.InTx(f.Context(), func(tx *db.Tx) error {
			a, err := fee.Active(tx)
			if err == nil {
				q, err = fee.Compute(a.Set, pay)
			}
			return err
		})
		return q, err
	}
	begun := time.Now()
	done, taken := make(chan struct{}), make(chan struct{}, 1)
	quotes := make([][]fee.Quote, 4)
	errs := make([]error, len(quotes))
	var wg sync.WaitGroup
	for i := range quotes {
		wg.Go(func() {
			for ended := false; !ended && errs[i] == nil; {
				select {
				case <-done:
					ended = true // take one last quote after the last swap
				case taken <- struct{}{}:
				}
				var q fee.Quote
				q, errs[i] = quote(i%2 == 0)
				quotes[i] = append(quotes[i], q)
			}
		})
	}
	for i := range swaps {
		for range 10 { // at least 10 quotes between two swaps
			<-taken
		}
		_, err := feetest.Service(f.DB, keys, percent(f.TB, int64(i%9_000)+2)).Refresh(f.Context(), fee.Request{AllowLarge: true})
		f.Must(err)
	}
	close(done)
	wg.Wait()
	took := time.Since(begun)
	f.Must(errors.Join(errs...))
	n, seen := 0, map[int64]bool{}
	for _, list := range quotes {
		last := int64(0)
		for _, q := range list {
			old, err := fee.ReadActivation(f.Context(), f.DB, q.Version)
			f.Must(err)
			again, err := fee.Compute(old.Set, pay)
			f.Must(err)
			f.Is("quote that is computed again", q, again)
			f.Is("the version is not older than the version of the previous quote", q.Version >= last, true)
			last, seen[q.Version] = q.Version, true
			n++
		}
		f.Is("version of the last quote", last, int64(swaps)+1)
	}
	f.Logf("%d quotes by %d of %d versions, %.0f a second", n, len(seen), swaps+1, float64(n)/took.Seconds())
}
