package view_test

import (
	"strings"
	"testing"
	"time"

	"assay/internal/view"
)

func TestVerdictsOf_PutsTheMostImportantFirst(t *testing.T) {
	ended := &view.RunBar{ID: "7", State: "finished", Outcome: "complete"}
	for _, c := range []struct {
		name string
		in   view.Situation
		want string // "level text -> href" of each verdict
	}{
		{"nothing is configured", view.Situation{QuoteAge: -1}, "bad Nothing is configured: set MARKET_PRICE_PROVIDERS to the providers that prices come from. -> /help/index.html"},
		{
			"all is well",
			view.Situation{Configured: 4, Prices: 23_990, QuoteAge: 12 * time.Minute, Last: ended},
			"good Everything works: all 4 providers respond; 95 % of 23,990 prices are based on quotes at most 12 min old. -> /items",
		},
		{
			"two providers were not requested yet",
			view.Situation{Configured: 3, Unrequested: 2, Prices: 5, QuoteAge: 12 * time.Minute, Last: ended},
			"good Everything works: 1 of 3 providers has responded, and 2 were not requested yet; 95 % of 5 prices are based on quotes at most 12 min old. -> /items",
		},
		{
			"two providers fail",
			view.Situation{Configured: 4, Down: []string{"a", "b"}, Prices: 23_990, QuoteAge: 31 * time.Minute, Last: ended},
			"bad 2 of 4 providers fail (a and b); 95 % of 23,990 prices are based on quotes at most 31 min old. -> /providers",
		},
		{
			"the only provider fails and the last run failed",
			view.Situation{Configured: 1, Down: []string{"a"}, QuoteAge: -1, Last: &view.RunBar{ID: "8", State: "failed", Outcome: "failed", LastError: "a: timeout"}},
			"bad The provider a fails. -> /providers\nbad The last run failed: a: timeout. -> /runs/8",
		},
		{
			"the last run for missing prices failed",
			view.Situation{Configured: 1, Prices: 1, QuoteAge: time.Minute, Last: ended, Missing: &view.RunBar{ID: "8", State: "failed", Outcome: "failed", LastError: "a: timeout"}},
			"bad The last run for missing prices failed: a: timeout. -> /runs/8",
		},
		{
			"all runs were for missing prices",
			view.Situation{Configured: 1, Prices: 1, QuoteAge: time.Minute, Missing: ended},
			"good Everything works: the provider responds; 95 % of 1 price are based on quotes at most 1 min old. -> /items",
		},
		{"no run yet", view.Situation{Configured: 1, QuoteAge: -1}, "calm No run has ended yet: start one to get prices. -> /runs"},
		{"the first run is in progress", view.Situation{Configured: 1, QuoteAge: -1, Running: &view.RunBar{ID: "1"}}, "calm No item has a price yet. -> /runs"},
		{
			"held prices do not hide good news",
			view.Situation{Configured: 1, Prices: 20, QuoteAge: 3 * time.Hour, Last: ended, Held: 1},
			"good Everything works: the provider responds; 95 % of 20 prices are based on quotes at most 3 h old. -> /items\ncalm 1 price is held until you accept or a later run confirms. -> /held",
		},
		{
			"more than 5 % of the prices are held",
			view.Situation{Configured: 1, Prices: 1198, QuoteAge: time.Minute, Last: ended, Held: 933},
			"warn 933 of 1,198 prices are held, so their last prices stay published. -> /held",
		},
		{"many problems", view.Situation{
			Failing: []string{"database"}, Ledger: &view.LedgerVerification{Status: "failed", FailureCount: 2}, Configured: 5, Prices: 100, QuoteAge: 49 * time.Hour,
			Degraded: []string{"d"}, Paused: []string{"p", "q"}, LowBudget: []string{"l"}, Quarantined: []view.MarketTrouble{{Provider: "x", Market: "m", Why: "half of the names"}},
			Last: &view.RunBar{ID: "9", State: "finished", Outcome: "partial"}, Held: 2,
		}, `bad The server fails its health check: database. -> /events
bad The ledger does not verify: 2 failures. -> /ledger
warn A response of x/m is in quarantine: half of the names. -> /providers/x
warn More than 5 % of 100 prices are based on quotes older than a day. -> /items?status=stale
warn The budget of l runs out before it resets. -> /providers
warn Some fetches of d failed. -> /providers
warn The last run is partial: some items or markets are missing. -> /runs/9
warn p and q are paused, so no requests are sent. -> /providers
calm 2 prices are held until you accept or a later run confirms. -> /held`},
	} {
		var got []string
		for _, v := range view.VerdictsOf(&c.in) {
			got = append(got, v.Level+" "+v.Text+" -> "+v.Href)
			if v.Action == "" {
				t.Errorf("%s: the verdict %q has no action", c.name, v.Text)
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}
