package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/randtest"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/wallettest"
)

// Activate makes a set of fee rules the active one, sealed with keys.
func Activate(tb testing.TB, s *db.DB, keys *wallet.Ring, set *fee.Set) {
	tb.Helper()
	service := &fee.Service{Store: s, Keys: keys, Source: fixed{set}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	err := service.Begin(tb.Context())
	if err == nil {
		_, err = service.Refresh(tb.Context(), fee.Request{AllowLarge: true})
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// percent is a set that charges some basis points.
func percent(f *fixture, points int64) *fee.Set {
	set, err := fee.Decode(strings.NewReader(fmt.Sprintf(`{"rules":[],"fallback":{"basisPoints":%d}}`, points)))
	f.must(err)
	return set
}

func feeVersions(f *fixture) {
	_, err := fee.ReadActivation(f.Context(), f.s, 0)
	f.is("the first version is not there", errors.Is(err, fee.ErrNone), true)
	for v := int64(1); v <= 3; v++ {
		f.tx(func(tx *db.Tx) error {
			f.must(fee.HoldRules(tx))
			f.must(fee.AddRules(tx, fee.Activation{At: f.now, Version: v, Set: percent(f, 100*v), Source: "a", Mark: "m", By: "b"}))
			a, err := fee.Active(tx)
			f.must(err)
			f.is("the transaction sees its own", a.Set.Version, v)
			return nil
		})
	}
	active, err := fee.ReadActivation(f.Context(), f.s, 0)
	f.must(err)
	f.is("newest", active.Version, int64(3))
	f.is("its set", active.Set.Fallback.Tiers[0].BasisPoints, int64(300))
	f.is("the set's version", active.Set.Version, int64(3))
	f.is("source, mark, by", active.Source+active.Mark+active.By, "amb")
	f.is("at", active.At.Equal(f.now), true)
	old, err := fee.ReadActivation(f.Context(), f.s, 1)
	f.must(err)
	f.is("an old one", old.Set.Fallback.Tiers[0].BasisPoints, int64(100))
	_, err = fee.ReadActivation(f.Context(), f.s, 4)
	f.is("a later one", errors.Is(err, fee.ErrNone), true)
	list, err := fee.ListActivations(f.Context(), f.s, 3, 1)
	f.must(err)
	f.is("a page", len(list), 1)
	f.is("of the version before", list[0].Version, int64(2))
}

// feesRolledBack looks for a version of which the number was used before by a
// transaction that came to nothing.
func feesRolledBack(f *fixture) {
	failed := errors.New("failed")
	err := f.s.InTx(f.Context(), func(tx *db.Tx) error {
		f.must(fee.AddRules(tx, fee.Activation{At: f.now, Version: 1, Set: percent(f, 9), Source: "a"}))
		_, err := fee.Active(tx)
		f.must(err)
		return failed
	})
	f.is("failed", errors.Is(err, failed), true)
	f.tx(func(tx *db.Tx) error {
		return fee.AddRules(tx, fee.Activation{At: f.now, Version: 1, Set: percent(f, 5), Source: "a"})
	})
	active, err := fee.ReadActivation(f.Context(), f.s, 0)
	f.must(err)
	f.is("points", active.Set.Fallback.Tiers[0].BasisPoints, int64(5))
}

// feesRace begins in many processes at once, and refreshes in many at once.
func feesRace(f *fixture) {
	const many = 8
	service := func(points int64) *fee.Service {
		return &fee.Service{Store: f.s, Keys: wallettest.NewRing(f, "k1"), Source: fixed{percent(f, points)}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	}
	each := func(do func(i int64) error) {
		f.Helper()
		errs := make([]error, many)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = do(int64(i)) })
		}
		wg.Wait()
		f.must(errors.Join(errs...))
	}
	each(func(int64) error { return service(1000).Begin(f.Context()) })
	active, err := fee.ReadActivation(f.Context(), f.s, 0)
	f.must(err)
	f.is("version after all began", active.Version, int64(1))
	each(func(int64) error {
		_, err := service(1001).Refresh(f.Context(), fee.Request{By: "x"})
		return err
	})
	active, err = fee.ReadActivation(f.Context(), f.s, 0)
	f.must(err)
	f.is("version after all refreshed from one source", active.Version, int64(2))
}

// fixed is a source of one set.
type fixed struct{ set *fee.Set }

func (fixed) Name() string { return "fixed" }

func (f fixed) Load(context.Context, string) (fee.Loaded, error) { return fee.Loaded{Set: f.set}, nil }

// feeSwaps activates sets while quotes are taken, half of them in transactions.
// Each must be what the version that it names says, computed again from what is
// stored.
func feeSwaps(f *fixture) {
	swaps := randtest.Count(20, 500)
	Activate(f, f.s, wallettest.NewRing(f, "k1"), percent(f, 1))
	pay := fee.Payment{Kind: fee.Sale, Amount: 1_000_000, Currency: "USD", At: f.now}
	quote := func(inTx bool) (q fee.Quote, err error) {
		if !inTx {
			a, err := fee.ReadActivation(f.Context(), f.s, 0)
			if err != nil {
				return q, err
			}
			return fee.Compute(a.Set, pay)
		}
		err = f.s.InTx(f.Context(), func(tx *db.Tx) error {
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
					ended = true // after one more
				case taken <- struct{}{}:
				}
				var q fee.Quote
				q, errs[i] = quote(i%2 == 0)
				quotes[i] = append(quotes[i], q)
			}
		})
	}
	service := &fee.Service{Store: f.s, Keys: wallettest.NewRing(f, "k1"), Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	for i := range swaps {
		for range 10 { // quotes between two swaps, at least
			<-taken
		}
		service.Source = fixed{percent(f, int64(i%9_000)+2)}
		_, err := service.Refresh(f.Context(), fee.Request{AllowLarge: true})
		f.must(err)
	}
	close(done)
	wg.Wait()
	took := time.Since(begun)
	f.must(errors.Join(errs...))
	n, seen := 0, map[int64]bool{}
	for _, list := range quotes {
		last := int64(0)
		for _, q := range list {
			old, err := fee.ReadActivation(f.Context(), f.s, q.Version)
			f.must(err)
			again, err := fee.Compute(old.Set, pay)
			f.must(err)
			f.is("a quote, computed again", q, again)
			f.is("no version after a later one", q.Version >= last, true)
			last, seen[q.Version] = q.Version, true
			n++
		}
		f.is("the last quote is by the last version", last, int64(swaps)+1)
	}
	f.Logf("%d quotes by %d of %d versions, %.0f a second", n, len(seen), swaps+1, float64(n)/took.Seconds())
}
