package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/internal/config"
	"assay/internal/db/dbtest"
)

// startApp starts an App on the SQLite database in dir, and returns it with a function that
// stops it.
func startApp(t *testing.T, dir string, environ ...string) (*App, func()) {
	t.Helper()
	environ = append(environ, "DATA_DIR="+dir, "LISTEN_ADDR=127.0.0.1:0")
	cfg, err := config.Load(config.Options{Environ: environ, Providers: Providers()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), Options{Config: cfg, Version: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	<-a.Ready()
	return a, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// send sends a request as admin and returns the status and body of the response.
func (a *App) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.cfg.AdminTokens[0].Reveal())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "modules")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (a *App) taskNames() (names []string) {
	for _, task := range a.tasks() {
		names = append(names, task.Name)
	}
	slices.Sort(names)
	return names
}

func (a *App) loopNames() (names []string) {
	for _, l := range a.loops() {
		names = append(names, l.name)
	}
	return names
}

func TestModules_PricesOnlyStartsNoWorkOfTheWallet(t *testing.T) {
	dir := t.TempDir()
	rules := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("got a request for the fee rules, want none") }))
	defer rules.Close()
	a, stop := startApp(t, dir, "MODULES=prices", "PAYMENT_FEE_RULES="+rules.URL)
	if got := a.taskNames(); !slices.Equal(got, []string{"audit_log", "inventory_values", "price_samples", "refresh", "retention", "waiting_inventories"}) {
		t.Errorf("got the tasks %q, want audit_log, inventory_values, price_samples, refresh, retention and waiting_inventories", got)
	}
	if got := a.loopNames(); !slices.Equal(got, []string{"lease", "dispatcher", "secrets", "feed", "webhooks", "prices", "overview", "samples"}) {
		t.Errorf("got the loops %q, want none of the market, the wallet or fees", got)
	}
	if a.fees != nil || a.feeClient != nil {
		t.Error("got a service of the fee rules, want none")
	}
	if _, metrics := a.send(t, "GET", "/metrics", ""); strings.Contains(metrics, "assay_ledger") || strings.Contains(metrics, "assay_trades") || !strings.Contains(metrics, "assay_items_in_scope") {
		t.Errorf("got the metrics %.2000s, want metrics of prices and none of the ledger or trades", metrics)
	}
	if status, body := a.send(t, "PUT", "/api/users/u1", "{}"); status != http.StatusOK {
		t.Errorf("got %d %s, want a new user", status, body)
	}
	if status, body := a.send(t, "DELETE", "/api/users/u1", ""); status != http.StatusNoContent {
		t.Errorf("got %d %s, want the user deleted", status, body)
	}
	if n := a.count(t, "SELECT count(*) FROM fee_rule_set"); n != 0 {
		t.Errorf("got %d versions of the fee rules, want none", n)
	}
	stop()
	for _, path := range []string{"secrets/WALLET_LEDGER_KEY", "checkpoints"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			t.Errorf("got the file %s, want none without its module", path)
		}
	}

	a, stop = startApp(t, dir)
	defer stop()
	if got := a.taskNames(); len(got) != 10 {
		t.Errorf("got the tasks %q with all modules, want 10", got)
	}
	if got := a.loopNames(); !slices.Contains(got, "ranking") {
		t.Errorf("got the loops %q with all modules, want the ranking of traders", got)
	}
	if status, body := a.send(t, "POST", walletOf("u2"), deposit); status != http.StatusCreated {
		t.Errorf("got %d %s, want a deposit with all modules", status, body)
	}
}

const deposit = `{"kind":"deposit","currency":"USD","amount":500}`

func walletOf(userID string) string {
	return "/api/functions/admin/wallet-ledger/" + userID + "/entries"
}

func (a *App) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := a.store.Read.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestModules_PricesOnlyKeepsMoney turns the wallet module off and on while a user has money.
func TestModules_PricesOnlyKeepsMoney(t *testing.T) {
	dir := t.TempDir()
	a, stop := startApp(t, dir)
	if status, body := a.send(t, "PUT", "/api/users/u1", "{}"); status != http.StatusOK {
		t.Fatalf("put user: got %d %s, want 200", status, body)
	}
	if status, body := a.send(t, "POST", walletOf("u1"), deposit); status != http.StatusCreated {
		t.Fatalf("deposit: got %d %s, want 201", status, body)
	}
	stop()

	a, stop = startApp(t, dir, "MODULES=prices")
	if status, body := a.send(t, "DELETE", "/api/users/u1", ""); status != http.StatusConflict || !strings.Contains(body, "user_has_money") {
		t.Errorf("got %d %s, want 409 for a user with money", status, body)
	}
	if status, body := a.send(t, "GET", "/api/health", ""); status != http.StatusOK || strings.Contains(body, "ledger") {
		t.Errorf("got %d %s, want a health report without the ledger", status, body)
	}
	stop()

	key := filepath.Join(dir, "secrets", "WALLET_LEDGER_KEY")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{Environ: []string{"DATA_DIR=" + dir, "MODULES=prices"}, Providers: Providers()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{Config: cfg, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "WALLET_LEDGER_KEY") {
		t.Errorf("got error %v, want one about WALLET_LEDGER_KEY", err)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}

	a, stop = startApp(t, dir)
	defer stop()
	if status, body := a.send(t, "GET", walletOf("u1"), ""); status != http.StatusOK || strings.Count(body, `"deposit"`) != 1 {
		t.Errorf("got %d %s, want the deposit", status, body)
	}
}

// TestModules_DifferentOnOneDatabaseWarn starts instances on one database. Only the instance with
// different modules warns.
func TestModules_DifferentOnOneDatabaseWarn(t *testing.T) {
	database := dbtest.On(t, dbtest.PostgreSQL)
	for _, c := range []struct {
		modules string
		warns   bool
	}{{"prices,market,wallet", false}, {"wallet,market,prices", false}, {"prices", true}} {
		cfg, err := config.Load(config.Options{Environ: []string{
			"DATABASE_URL=" + database.URL, "DATA_DIR=" + t.TempDir(), "LISTEN_ADDR=127.0.0.1:0", "MODULES=" + c.modules,
			"ADMIN_API_TOKEN=" + strings.Repeat("a", 40), "PLATFORM_API_TOKEN=" + strings.Repeat("b", 40),
			"MARKET_PRICE_SYNC_SECRET=" + strings.Repeat("c", 40), "WALLET_LEDGER_KEY=" + strings.Repeat("0123456789abcdef", 4),
		}, Providers: Providers()})
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		a, err := New(t.Context(), Options{Config: cfg, Version: "test", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Close() }()
		if got := strings.Contains(log.String(), "instances have different MODULES"); got != c.warns {
			t.Errorf("MODULES=%s: got a warning %v, want %v:\n%s", c.modules, got, c.warns, log.String())
		}
	}
}

// TestModules_PricesOnlyWarnsOnceOfFeeRules configures fee rules that cannot be read. Without the
// wallet module nothing reads them, so the only warning is that they have no effect.
func TestModules_PricesOnlyWarnsOnceOfFeeRules(t *testing.T) {
	for modules, want := range map[string]string{
		"prices":               "PAYMENT_FEE_RULES has no effect, because MODULES is prices",
		"prices,market,wallet": "PAYMENT_FEE_RULES: ",
	} {
		cfg, err := config.Load(config.Options{
			Environ:   []string{"DATA_DIR=" + t.TempDir(), "MODULES=" + modules, "PAYMENT_FEE_RULES=" + filepath.Join(t.TempDir(), "none.json")},
			Providers: Providers(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if len(cfg.Warnings) != 1 || !strings.HasPrefix(cfg.Warnings[0], want) {
			t.Errorf("MODULES=%s: got the warnings %q, want one that begins with %q", modules, cfg.Warnings, want)
		}
	}
}
