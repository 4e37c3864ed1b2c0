package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
	"assay/internal/provider/steam"
	"assay/internal/provider/steam/steamtest"
)

// TestSteam_ProviderDebugDistinguishesErrors uses each kind of Steam response without a price, and
// checks the report to operators. None of the responses may set a price.
func TestSteam_ProviderDebugDistinguishesErrors(t *testing.T) {
	t.Parallel()
	always := func(status int, body string) *steamtest.Server {
		return &steamtest.Server{Always: steamtest.Reply{Status: status, Body: body}}
	}
	for _, c := range []struct {
		name   string
		fake   *steamtest.Server
		kind   provider.Kind // empty: a valid response without a price
		detail string
	}{
		{"a success without a price", &steamtest.Server{}, "", ""},
		{"no success", always(http.StatusOK, `{"success":false}`), "", ""},
		{"null", always(http.StatusOK, "null"), provider.KindProtocol, "null"},
		{"a page", always(http.StatusOK, steamtest.Page), provider.KindProtocol, "HTML"},
		{"a number for success", always(http.StatusOK, `{"success":104}`), provider.KindProtocol, "104"},
		{"a list", always(http.StatusOK, "[]"), provider.KindProtocol, "not an object"},
		{"too many requests", always(http.StatusTooManyRequests, "null"), provider.KindRateLimited, "429"},
		{"a page that forbids", always(http.StatusForbidden, steamtest.Page), provider.KindRateLimited, "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := httptest.NewServer(c.fake)
			t.Cleanup(fake.Close)
			s := onSQLite.newServer(t, "MARKET_PRICE_PROVIDERS=steam", "STEAM_BASE_URL="+fake.URL)
			s.start()
			s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "Nothing Such"}})
			s.refresh()
			var d providerDebug
			s.await("a response of Steam", func() bool {
				d = s.debugOf(steam.Name)
				return len(d.Requests) > 0 && (c.kind == "" || d.LastError != nil)
			})
			t.Logf("%q: requests %+v, last error %s", c.name, d.Requests, quoted(d.LastError))
			if c.kind == "" {
				if d.LastError != nil {
					t.Errorf("response without a price: got error %s, want none", quoted(d.LastError))
				}
			} else if !strings.Contains(*d.LastError, errorText(steam.Name, c.kind)) || !strings.Contains(*d.LastError, c.detail) {
				t.Errorf("provider-debug: got %s, want %s and %q", quoted(d.LastError), c.kind, c.detail)
			}
			if rows := all[row](s, "/api/inventory/u"); rows[0].EstimatedValue != nil {
				t.Errorf("got value %v, want none", rows[0].EstimatedValue)
			}
		})
	}
}

// TestSteam_ProviderTestRespectsRetryAfter runs a provider test while a server is waiting for a
// retry-after of Steam. The server locks an SQLite database and shares a PostgreSQL database. The
// provider test must send no request.
func TestSteam_ProviderTestRespectsRetryAfter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		fake := providertest.NewServer(t, &steamtest.Server{Always: steamtest.Reply{Status: http.StatusTooManyRequests, Body: "null"}})
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=steam", "STEAM_BASE_URL="+fake.URL())
		s.start()
		s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "Nothing Such"}})
		s.refresh()
		s.await("a retry-after", func() bool { return s.debugOf(steam.Name).BlockedUntil != nil })
		before := len(fake.Hits())
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "provider", "test", steam.Name)
		cmd.Env = s.env
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "not sent: the provider demanded a wait") {
			t.Errorf("provider test: got error %v, want one that reports an unsent request; output:\n%s", err, out)
		}
		if sent := len(fake.Hits()) - before; sent != 0 {
			t.Errorf("got %d requests before the end of the retry-after, want none", sent)
		}
	})
}
