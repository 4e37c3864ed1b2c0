package exchange

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// bank is a place that returns what a test sets.
type bank struct {
	rates   pricing.Rates
	err     error
	queries int
}

func (*bank) Name() string { return "bank" }
func (*bank) Pace() Pace   { return Pace{Every: 4 * time.Hour, Again: time.Hour} }
func (b *bank) Rates(context.Context, money.Currency) (pricing.Rates, error) {
	b.queries++
	return b.rates, b.err
}

// world is a keeper of a bank's rates on a clock that the test sets.
type world struct {
	*Keeper
	t     *testing.T
	bank  *bank
	store *db.DB
	now   time.Time
	log   bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := db.Open(t.Context(), db.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := &world{t: t, bank: &bank{rates: of(t, map[money.Currency]string{"EUR": "1.08"})}, store: store, now: day.Add(16 * time.Hour)}
	w.Keeper = w.another(nil)
	return w
}

// another makes the keeper of another process, or of one that was restarted.
func (w *world) another(fixed pricing.Rates) *Keeper {
	return New(Options{
		Base: "USD", Fixed: fixed, Place: w.bank, Store: w.store, Now: func() time.Time { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
}

// has checks the rates that a run begins with, and how often the bank was queried.
func (w *world) has(k *Keeper, want pricing.Rates, queries int) {
	w.t.Helper()
	got, err := k.Current(w.t.Context())
	if err != nil || !maps.Equal(got, want) || w.bank.queries != queries {
		w.t.Errorf("rates %v, %v after %d requests; want %v after %d", got, err, w.bank.queries, want, queries)
	}
}

// logged checks how often the log holds a text.
func (w *world) logged(text string, times int) {
	w.t.Helper()
	if n := strings.Count(w.log.String(), text); n != times {
		w.t.Errorf("the log holds %q %d times, want %d:\n%s", text, n, times, w.log.String())
	}
}

func TestCurrent_QueriesOnceForAllProcesses(t *testing.T) {
	w := newWorld(t)
	first := w.bank.rates
	w.has(w.Keeper, first, 1)
	for range 5 {
		w.has(w.another(nil), first, 1)
	}
	w.now = w.now.Add(4 * time.Hour)
	w.bank.rates = of(t, map[money.Currency]string{"EUR": "1.09"})
	w.has(w.another(nil), w.bank.rates, 2)
	w.has(w.Keeper, w.bank.rates, 2)
}

func TestCurrent_KeepsTheLastGoodRatesWhileTheBankIsAway(t *testing.T) {
	w := newWorld(t)
	good := w.bank.rates
	w.has(w.Keeper, good, 1)
	w.bank.rates, w.bank.err = nil, errors.New("ecb: timeout")
	w.now = w.now.Add(5 * time.Hour)
	w.has(w.another(nil), good, 2)
	w.has(w.Keeper, good, 2)
	w.now = w.now.Add(time.Hour)
	w.has(w.Keeper, good, 3)
	w.logged("ecb: timeout", 1)
	_, state, err := w.Known(t.Context())
	if err != nil || state.LastError != "ecb: timeout" || !state.LastErrorAt.Equal(w.now) {
		t.Errorf("state %+v, %v", state, err)
	}
	w.bank.rates, w.bank.err = good, nil
	w.now = w.now.Add(time.Hour)
	w.has(w.Keeper, good, 4)
	if _, state, _ := w.Known(t.Context()); state.LastError != "" {
		t.Errorf("the error stays: %q", state.LastError)
	}
}

func TestCurrent_HasNoRatesBeforeTheFirstResponse(t *testing.T) {
	w := newWorld(t)
	w.bank.rates, w.bank.err = nil, errors.New("ecb: connect")
	w.has(w.Keeper, pricing.Rates{}, 1)
	w.has(w.Keeper, pricing.Rates{}, 1)
}

// TestCurrent_WaitsForTheFirstRates begins a second run while another process
// requests the first time; one that died meanwhile is not waited for for ever.
func TestCurrent_WaitsForTheFirstRates(t *testing.T) {
	w := newWorld(t)
	claimed, err := claimRatePlace(t.Context(), w.store, "bank", time.Time{}, w.now.Add(patience))
	if err != nil || !claimed {
		t.Fatal(claimed, err)
	}
	if _, err := w.Current(t.Context()); !errors.Is(err, ErrPending) {
		t.Errorf("error %v, want %v", err, ErrPending)
	}
	w.now = w.now.Add(patience)
	w.has(w.Keeper, w.bank.rates, 1)
}

func TestCurrent_AsksAfterAClockWasSetBack(t *testing.T) {
	w := newWorld(t)
	w.has(w.Keeper, w.bank.rates, 1)
	w.now = w.now.Add(-48 * time.Hour)
	w.has(w.Keeper, w.bank.rates, 2)
}

func TestCurrent_RefusesAJumpAndKeepsTheOld(t *testing.T) {
	w := newWorld(t)
	w.bank.rates = of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0066"})
	w.has(w.Keeper, w.bank.rates, 1)
	w.now = w.now.Add(4 * time.Hour)
	w.bank.rates = of(t, map[money.Currency]string{"EUR": "10.9", "GBP": "0.84", "JPY": "0.0099"}) // a slip; too low; half as much again
	w.has(w.Keeper, of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0099"}), 2)
	w.logged("EUR: 10.9 of 2026-11-20 is too far from 1.08 of 2026-11-20", 1)
	w.now = w.now.Add(4 * time.Hour)
	w.has(w.another(nil), of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0099"}), 3)
	w.logged("EUR: 10.9", 1) // logged already

	// A rate of two months ago is no measure.
	w.now = w.now.Add(60 * 24 * time.Hour)
	later := pricing.Rates{"EUR": {Value: 10_900_000_000_000, Date: day.AddDate(0, 2, 0)}}
	w.bank.rates = later
	w.has(w.Keeper, later, 4)
}

func TestCurrent_TakesAnOperatorsWordBeforeTheBanks(t *testing.T) {
	w := newWorld(t)
	w.has(w.another(of(t, map[money.Currency]string{"EUR": "2", "RUB": "0.0105"})),
		of(t, map[money.Currency]string{"EUR": "2", "RUB": "0.0105"}), 1)
}

func TestCurrent_WarnsOfOldRatesOnceADay(t *testing.T) {
	w := newWorld(t)
	w.has(w.Keeper, w.bank.rates, 1)
	w.now = day.AddDate(0, 0, 4).Add(-time.Second) // Friday's, on a Monday
	w.has(w.Keeper, w.bank.rates, 2)
	w.logged("more than three days old", 0)
	for hour := range 30 {
		w.now = day.AddDate(0, 0, 4).Add(time.Duration(hour) * time.Hour)
		if _, err := w.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.logged("more than three days old", 2)
	w.logged("oldest=EUR date=2026-11-20", 2)
}

func TestFile_IsReadAgainForEachRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	k := w.another(nil)
	k.o.Place = NewFile(path)
	read := func(want string) {
		t.Helper()
		got, err := k.Current(t.Context())
		if err != nil || got["EUR"].Value.String() != want {
			t.Errorf("EUR at %v, %v; want %s", got["EUR"], err, want)
		}
	}
	write("EUR=1.08@2026-11-20")
	read("1.08")
	write(daily)
	read("1.0834")
	for _, broken := range []string{"", "EUR=1.09", daily[:100]} {
		write(broken)
		read("1.0834")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	read("1.0834")
	w.logged("the file of rates cannot be read", 1)
	w.logged(path, 0)
	write("EUR=1.09@2026-11-20")
	read("1.09")
}
