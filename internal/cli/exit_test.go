package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// TestExit_CommandsReturnDocumentedCodes runs each command that needs a server. The server rejects
// every request. The test compares the exit codes with the documented table.
func TestExit_CommandsReturnDocumentedCodes(t *testing.T) {
	commands := map[string]string{ // arguments separated by |
		"refresh": "", "status": "", "runs": "", "export": "-|--format|csv", "cancel": "17", "retry-failed": "17", "prices": "x", "inventory sync": "u1|--steam", "inventory show": "u1",
		"provider list": "", "provider pause": "sim", "provider resume": "sim", "provider accept": "sim",
		"users show": "u1", "users put": "u1", "users delete": "u1",
		"listings list": "", "listings show": "1", "listings price": "1|500", "listings cancel": "1|2",
		"trades list": "", "trades show": "1", "trades complete": "1", "trades reverse": "1",
		"wallet balance": "u1", "wallet entries": "u1", "wallet post": "u1|deposit|500|USD",
		"fees refresh": "", "fees show": "", "fees rollback": "1", "fees quote": "sale|100|USD", "events": "",
		"keys list": "", "keys create": "shop|--scope|prices:read", "keys rotate": "shop", "keys revoke": "shop", "audit": "",
		"webhooks list": "", "webhooks create": "https://shop.example/hooks", "webhooks enable": "1", "webhooks disable": "1", "webhooks test": "1",
		"webhooks rotate": "1", "webhooks deliveries": "1", "webhooks resend": "1|2", "webhooks delete": "1",
		"verify": "u1", "healthcheck": "",
		"operators list": "", "operators create": "anna", "operators role": "anna|read", "operators password": "anna", "operators disable": "anna", "operators enable": "anna",
	}
	alone := " serve demo backtest config backup restore copy migrate completion version mcp provider-test provider-names "
	var g grammar
	parser, err := newParser(&g, newSettingFlags(), nil, nil, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if leaf, ok := node.(*kong.Node); ok && leaf.Leaf() && !leaf.Hidden {
			name := strings.TrimPrefix(leaf.FullPath(), "assay ")
			if _, known := commands[name]; !known && !strings.Contains(alone, " "+strings.ReplaceAll(name, " ", "-")+" ") {
				t.Errorf("command %s: got no entry in commands or alone, want one", name)
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		code   string
		want   int
	}{
		{400, "invalid_parameters", exitRefused},
		{401, "unauthorized", exitUnauthorized},
		{403, "forbidden", exitUnauthorized},
		{404, "not_found", exitNotFound},
		{409, "conflict", exitRefused},
		{413, "body_too_large", exitRefused},
		{422, "reserved_user", exitRefused},
		{429, "too_many_failures", exitUnauthorized},
		{500, "internal_error", exitFailed},
		{502, "fee_rules_unreachable", exitUnreachable},
		{503, "busy", exitUnreachable},
		{503, "database_unavailable", exitUnreachable},
		{503, "database_read_only", exitUnreachable},
		{503, "ledger_tampered", exitLedgerFailed},
		{503, "ledger_key_missing", exitLedgerFailed},
		{503, "response_tampered", exitLedgerFailed},
		{503, "trade_tampered", exitLedgerFailed},
		{503, "fee_rules_tampered", exitLedgerFailed},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, c.status, fmt.Sprintf(`{"title":"T","status":%d,"detail":"D","code":%q,"requestId":"r"}`, c.status, c.code))
		}))
		for name, args := range commands {
			var out, errs bytes.Buffer
			line := strings.Fields(name)
			if args != "" {
				line = append(line, strings.Split(args, "|")...)
			}
			p := Program{Args: line, Environ: []string{
				"LISTEN_ADDR=" + strings.TrimPrefix(server.URL, "http://"), "MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret,
				"PLATFORM_API_TOKEN=" + fakePlatformToken, "ADMIN_API_TOKEN=" + fakeAdminToken,
			}, Stdin: strings.NewReader("a password of anna\n"), Stdout: &out, Stderr: &errs, Now: time.Now}
			want := c.want
			if name == "healthcheck" && c.status == http.StatusServiceUnavailable {
				want = exitUnreachable // the body of its 503 is a health report, not a problem
			}
			if got := p.Run(context.Background()); got != want {
				t.Errorf("response %d %s: assay %s: got exit code %d, want %d: %s", c.status, c.code, strings.Join(line, " "), got, want, &errs)
			}
		}
		server.Close()
	}
}
