package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"assay/internal/provider/sim"
)

// TestModules_PricesOnlyAndBack prices an inventory on a server with MODULES=prices, then turns
// the market and the wallet on, off and on again. No money may be lost.
func TestModules_PricesOnlyAndBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		markets, url := simulator(t, sim.Options{Names: 20, Frozen: true})
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url)
		all := s.env
		restart := func(environ ...string) {
			t.Helper()
			if s.cmd != nil {
				if _, err := s.stop(); err != nil {
					t.Fatal(err)
				}
			}
			s.env = slices.Concat(all, environ)
			s.start()
		}
		restart("MODULES=prices")
		pushNames(s, markets.Names(), 1)
		s.awaitPriced()
		status, body, err := s.call(http.MethodGet, "/api/listings", nil)
		if err != nil || status != http.StatusNotFound || !strings.Contains(string(body), `"code":"module_off"`) {
			t.Errorf("listings: got %d %s, %v, want 404 module_off", status, body, err)
		}
		for _, args := range [][]string{{"listings", "list"}, {"trades", "list"}, {"wallet", "balance", "u"}, {"fees", "show"}} {
			if _, stderr := s.command(6, args...); !strings.Contains(stderr, "set MODULES to prices,market,wallet") {
				t.Errorf("%v: got the output %s, want a hint to the setting MODULES", args, stderr)
			}
		}
		s.command(0, "status")

		restart()
		s.putUser("rich", "{}")
		s.deposit("rich", 500)
		restart("MODULES=prices")
		s.deleteUser("rich", "user_has_money")
		restart()
		if got := s.balances("rich"); got != "500/0" {
			t.Errorf("got the balance %s, want 500/0", got)
		}
		s.verified()
	})
}
