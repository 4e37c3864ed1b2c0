package e2e

import (
	"strings"
	"testing"

	"assay/internal/provider/sim"
)

// TestCommands_WorkWithRunningServer runs every command that uses a server, with text and JSON
// output. The server has real runs, listings, trades and balances.
func TestCommands_WorkWithRunningServer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		_, url := simulator(t, sim.Options{Names: 20})
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url)
		s.start()
		listings := s.list("seller", 3, 1_000)
		s.deposit("buyer", 10_000)
		trade := s.bought(listings[0], "buyer")

		for _, c := range []struct {
			args string // separated by |
			code int
			text string // on standard output, or on standard error if the code is not 0
		}{
			{"refresh|--wait", 0, "finished"},
			{"runs", 0, "bulk"},
			{"runs|--kind|bulk|--limit|1", 0, "bulk"},
			{"runs|999999", 6, "job_not_found"},
			{"cancel", 2, "no bulk run is queued or running"},
			{"cancel|999999", 6, "job_not_found"},
			{"retry-failed|999999", 6, "job_not_found"},
			{"prices|--search|a", 0, "NAME"},
			{"prices|--status|ok|--min-price|0.01|--sort=-price", 0, "INTERVAL"},
			{"prices|--market|nowhere", 7, "invalid_parameters"},
			{"prices|no such item|--accept", 6, "item_not_found"},
			{"provider|list", 0, "sim"},
			{"provider|pause|sim", 0, "sim is paused"},
			{"provider|list", 0, "paused"},
			{"provider|resume|sim", 0, "sim is resumed"},
			{"provider|accept|nowhere", 6, "nowhere"},
			{"users|put|u9|--display-name|Ann|--no-leaderboard", 0, "anonymous"},
			{"users|show|u9", 0, "Ann"},
			{"users|show|unknown", 6, "user_not_found"},
			{"users|delete|u9", 0, "u9 is deleted"},
			{"users|delete|u9", 0, "u9 is deleted"},
			{"users|show|u9", 6, "user_not_found"},
			{"users|delete|unknown", 6, "user_not_found"},
			{"users|delete|seller", 7, "user_has_listings"},
			{"users|delete|buyer", 7, "user_has_trades"},
			{"listings|--user|seller|--state|active", 0, "seller"},
			{"listings|show|" + listings[1], 0, "is active"},
			{"listings|price|" + listings[1] + "|1990", 0, "19.90 USD"},
			{"listings|price|" + listings[1] + "|0", 7, "price"},
			{"listings|cancel|" + listings[1], 0, "is cancelled"},
			{"listings|cancel|" + listings[1] + "|" + listings[1], 0, "is cancelled"},
			{"listings|cancel|" + listings[1] + "|999999", 1, "1 of 2"},
			{"trades|--user|buyer", 0, "pending"},
			{"trades|complete|" + trade.ID, 0, "is completed"},
			{"trades|show|" + trade.ID, 0, "by rule"},
			{"trades|reverse|" + trade.ID, 0, "is reversed"},
			{"wallet|balance|buyer", 0, "100.00"},
			{"wallet|post|buyer|deposit|500|USD|--idempotency-key|once", 0, "105.00 USD available"},
			{"wallet|post|buyer|deposit|500|USD|--idempotency-key|once", 0, "105.00 USD available"},
			{"wallet|post|buyer|withdrawal|99999|USD", 7, "insufficient_funds"},
			{"wallet|entries|buyer|--currency|USD", 0, "deposit"},
			{"fees|rollback|1", 0, "version 1"},
			{"fees|rollback|99", 6, "99"},
			{"events", 0, "job.finished"},
			{"webhooks|create|http://shop.example/hook", 7, "https"},
			{"webhooks|create|https://shop.example/hook|--event|job.failed", 0, "the secret of webhook 1"},
			{"webhooks|disable|1", 0, "webhook 1 is disabled"},
			{"webhooks|enable|1", 0, "webhook 1 is healthy"},
			{"webhooks|rotate|1|--keep-hours|1", 0, "the old secret until"},
			{"webhooks|test|1", 0, "not delivered"},
			{"webhooks|deliveries|1", 0, "NUMBER"},
			{"webhooks|resend|1|99", 6, "delivery_not_found"},
			{"webhooks", 0, "shop.example"},
			{"webhooks|delete|99", 6, "webhook_not_found"},
		} {
			args := strings.Split(c.args, "|")
			out, errs := s.command(c.code, args...)
			if c.code != 0 {
				out = errs
			}
			if !strings.Contains(out, c.text) {
				t.Errorf("assay %s: the output lacks %q:\n%s", strings.Join(args, " "), c.text, out)
			}
			if c.code == 0 && args[0] != "trades" && args[0] != "listings" {
				if out, _ := s.command(0, append(args, "--json")...); !strings.HasPrefix(out, "{") {
					t.Errorf("assay %s --json: got %s, want an object", strings.Join(args, " "), out)
				}
			}
		}
	})
}
