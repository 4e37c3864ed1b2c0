package e2e

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"assay/internal/provider/sim"
)

// TestMCP_ServesARunningServer starts `assay mcp` as a program for language models would, and
// uses its tools on a real server.
func TestMCP_ServesARunningServer(t *testing.T) {
	t.Parallel()
	markets, url := simulator(t, sim.Options{Names: 20})
	s := newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url, "MARKET_PRICE_RATES=EUR=1.25@2026-11-20")
	s.start()
	var items []asset
	for i, name := range markets.Names() {
		items = append(items, asset{AssetID: strconv.Itoa(i), MarketHashName: name})
	}
	s.push("owner", 730, items)
	s.command(0, "refresh", "--wait")

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "mcp", "--allow-writes")
	cmd.Env = s.env
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("assay mcp: got %v, want a clean end", err)
		}
	})
	name := all[struct{ MarketHashName string }](s, "/api/prices/items?minPrice=0.01")[0].MarketHashName
	for _, c := range []struct {
		tool   string
		args   map[string]any
		failed bool
		want   string
	}{
		{"search_items", map[string]any{"currency": "EUR"}, false, `"origin":"fixed"`},
		{"explain_price", map[string]any{"name": name}, false, `"sentences"`},
		{"lookup_prices", map[string]any{"names": []string{name, "no such item"}}, false, `"status":"unknown"`},
		{"market_quotes", map[string]any{"names": []string{name}}, false, `"bestAsk"`},
		{"price_history", map[string]any{"name": name, "currency": "EUR"}, false, `"origin":"history"`},
		{"price_figures", map[string]any{"name": name}, false, `"periods"`},
		{"price_at", map[string]any{"name": name, "time": "2000-01-01T00:00:00Z"}, true, "price_not_found"},
		{"price_feed", nil, false, `"change"`},
		{"price_changes", nil, false, `"upToDate"`},
		{"status", nil, false, `"freshness"`},
		{"providers", nil, false, `"sim"`},
		{"runs", map[string]any{"kind": "bulk"}, false, `"outcome"`},
		{"run_items", map[string]any{"id": "1", "state": "updated"}, false, `"items"`},
		{"start_refresh", map[string]any{"dryRun": true}, false, `"dry_run"`},
		{"pause_provider", map[string]any{"provider": "sim"}, false, `"done":true`},
		{"resume_provider", map[string]any{"provider": "sim"}, false, `"done":true`},
		{"accept_price", map[string]any{"name": "no such item"}, true, "item_not_found"},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil {
			t.Errorf("%s: got error %v, want a result", c.tool, err)
			continue
		}
		text := result.Content[0].(*mcp.TextContent).Text
		if result.IsError != c.failed || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: got %.300s, error: %t; want %q, error: %t", c.tool, c.args, text, result.IsError, c.want, c.failed)
		}
	}
}
