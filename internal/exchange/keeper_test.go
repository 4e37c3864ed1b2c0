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

// fakeSource is a Source with rates or an error set by the test.
type fakeSource struct {
	rates   pricing.Rates
	err     error
	queries int
}

func (*fakeSource) Name() string       { return "test" }
func (*fakeSource) Schedule() Schedule { return Schedule{Every: 4 * time.Hour, AfterError: time.Hour} }

func (b *fakeSource) Rates(context.Context, money.Currency) (pricing.Rates, error) {
	b.queries++
	return b.rates, b.err
}

// fixture is a Keeper with a fakeSource and a clock that the test sets.
type fixture struct {
	*Keeper
	t      *testing.T
	source *fakeSource
	store  *db.DB
	now    time.Time
	log    bytes.Buffer
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := db.Open(t.Context(), db.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	f := &fixture{t: t, source: &fakeSource{rates: of(t, map[money.Currency]string{"EUR": "1.08"})}, store: store, now: day.Add(16 * time.Hour)}
	f.Keeper = f.newKeeper(nil)
	return f
}

// newKeeper returns a Keeper with the same store, as in another process or after a restart.
func (f *fixture) newKeeper(fixed pricing.Rates) *Keeper {
	return New(Options{
		Base: "USD", Fixed: fixed, Source: f.source, Store: f.store, Now: func() time.Time { return f.now },
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
}

// wantRates checks the current rates and the number of queries of the source.
func (f *fixture) wantRates(k *Keeper, want pricing.Rates, queries int) {
	f.t.Helper()
	got, err := k.Current(f.t.Context())
	if err != nil || !maps.Equal(got, want) || f.source.queries != queries {
		f.t.Errorf("got rates %v, error %v after %d queries, want %v after %d", got, err, f.source.queries, want, queries)
	}
}

// wantLogged checks how often the log contains a text.
func (f *fixture) wantLogged(text string, times int) {
	f.t.Helper()
	if n := strings.Count(f.log.String(), text); n != times {
		f.t.Errorf("got the log message %q %d times, want %d:\n%s", text, n, times, f.log.String())
	}
}

func TestCurrent_QueriesOnceForAllProcesses(t *testing.T) {
	f := newFixture(t)
	first := f.source.rates
	f.wantRates(f.Keeper, first, 1)
	for range 5 {
		f.wantRates(f.newKeeper(nil), first, 1)
	}
	f.now = f.now.Add(4 * time.Hour)
	f.source.rates = of(t, map[money.Currency]string{"EUR": "1.09"})
	f.wantRates(f.newKeeper(nil), f.source.rates, 2)
	f.wantRates(f.Keeper, f.source.rates, 2)
}

func TestCurrent_KeepsTheLastRatesWhenQueriesFail(t *testing.T) {
	f := newFixture(t)
	good := f.source.rates
	f.wantRates(f.Keeper, good, 1)
	f.source.rates, f.source.err = nil, errors.New("ecb: timeout")
	f.now = f.now.Add(5 * time.Hour)
	f.wantRates(f.newKeeper(nil), good, 2)
	f.wantRates(f.Keeper, good, 2)
	f.now = f.now.Add(time.Hour)
	f.wantRates(f.Keeper, good, 3)
	f.wantLogged("ecb: timeout", 1)
	_, state, err := f.Known(t.Context())
	if err != nil || state.LastError != "ecb: timeout" || !state.LastErrorAt.Equal(f.now) {
		t.Errorf("got state %+v, error %v, want the last error at %v", state, err, f.now)
	}
	f.source.rates, f.source.err = good, nil
	f.now = f.now.Add(time.Hour)
	f.wantRates(f.Keeper, good, 4)
	if _, state, _ := f.Known(t.Context()); state.LastError != "" {
		t.Errorf("after a success: got last error %q, want none", state.LastError)
	}
}

func TestCurrent_HasNoRatesBeforeTheFirstResponse(t *testing.T) {
	f := newFixture(t)
	f.source.rates, f.source.err = nil, errors.New("ecb: connect")
	f.wantRates(f.Keeper, pricing.Rates{}, 1)
	f.wantRates(f.Keeper, pricing.Rates{}, 1)
}

// While another process fetches the first rates, Current returns ErrPending. After the claim of
// that process times out, Current queries the source itself.
func TestCurrent_ReturnsErrPendingUntilTheClaimTimesOut(t *testing.T) {
	f := newFixture(t)
	claimed, err := claimRateSource(t.Context(), f.store, "test", time.Time{}, f.now.Add(claimTimeout))
	if err != nil || !claimed {
		t.Fatalf("claimRateSource: got %v, %v, want true", claimed, err)
	}
	if _, err := f.Current(t.Context()); !errors.Is(err, ErrPending) {
		t.Errorf("got error %v, want %v", err, ErrPending)
	}
	f.now = f.now.Add(claimTimeout)
	f.wantRates(f.Keeper, f.source.rates, 1)
}

func TestCurrent_QueriesWhenTheClockWasSetBack(t *testing.T) {
	f := newFixture(t)
	f.wantRates(f.Keeper, f.source.rates, 1)
	f.now = f.now.Add(-48 * time.Hour)
	f.wantRates(f.Keeper, f.source.rates, 2)
}

func TestCurrent_RejectsRatesThatChangeTooMuch(t *testing.T) {
	f := newFixture(t)
	f.source.rates = of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0066"})
	f.wantRates(f.Keeper, f.source.rates, 1)
	f.now = f.now.Add(4 * time.Hour)
	f.source.rates = of(t, map[money.Currency]string{"EUR": "10.9", "GBP": "0.84", "JPY": "0.0099"}) // EUR too high, GBP too low, JPY exactly 1.5 times
	f.wantRates(f.Keeper, of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0099"}), 2)
	f.wantLogged("EUR: 10.9 of 2026-11-20 differs too much from 1.08 of 2026-11-20", 1)
	f.now = f.now.Add(4 * time.Hour)
	f.wantRates(f.newKeeper(nil), of(t, map[money.Currency]string{"EUR": "1.08", "GBP": "1.27", "JPY": "0.0099"}), 3)
	f.wantLogged("EUR: 10.9", 1) // logged already

	// Rates that are two months apart are not compared.
	f.now = f.now.Add(60 * 24 * time.Hour)
	later := pricing.Rates{"EUR": {Value: 10_900_000_000_000, Date: day.AddDate(0, 2, 0)}}
	f.source.rates = later
	f.wantRates(f.Keeper, later, 4)
}

func TestCurrent_FixedRatesOverrideThePlace(t *testing.T) {
	f := newFixture(t)
	f.wantRates(f.newKeeper(of(t, map[money.Currency]string{"EUR": "2", "RUB": "0.0105"})),
		of(t, map[money.Currency]string{"EUR": "2", "RUB": "0.0105"}), 1)
}

func TestCurrent_WarnsAboutOldRatesOnceADay(t *testing.T) {
	f := newFixture(t)
	f.wantRates(f.Keeper, f.source.rates, 1)
	f.now = day.AddDate(0, 0, 4).Add(-time.Second) // Monday, with the rates of Friday
	f.wantRates(f.Keeper, f.source.rates, 2)
	f.wantLogged("more than three days old", 0)
	for hour := range 30 {
		f.now = day.AddDate(0, 0, 4).Add(time.Duration(hour) * time.Hour)
		if _, err := f.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.wantLogged("more than three days old", 2)
	f.wantLogged("oldest=EUR date=2026-11-20", 2)
}

func TestFile_IsReadForEachRefresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := newFixture(t)
	k := f.newKeeper(nil)
	k.o.Source = NewFile(path)
	read := func(want string) {
		t.Helper()
		got, err := k.Current(t.Context())
		if err != nil || got["EUR"].Value.String() != want {
			t.Errorf("got EUR rate %v, error %v, want %s", got["EUR"], err, want)
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
	f.wantLogged("file of exchange rates: cannot be read", 1)
	f.wantLogged(path, 0)
	write("EUR=1.09@2026-11-20")
	read("1.09")
}
