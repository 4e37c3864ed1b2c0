package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// startMCP runs `assay mcp` against a server. It returns a client session of the MCP library, which
// is connected by pipes.
func startMCP(t *testing.T, environ []string, args ...string) *mcp.ClientSession {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan int, 1)
	var errs strings.Builder
	go func() {
		p := Program{Args: append([]string{"mcp"}, args...), Environ: environ, Stdin: in, Stdout: out, Stderr: &errs, Now: time.Now}
		ended <- p.Run(context.Background())
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatalf("connect: got error %v, want none", err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close the session: got error %v, want none", err)
		}
		if code := <-ended; code != 0 {
			t.Errorf("assay mcp: got exit code %d and %q, want 0 after the end of its input", code, errs.String())
		}
	})
	return session
}

// toolText calls a tool and returns the text of its result.
func toolText(t *testing.T, session *mcp.ClientSession, name string, args map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	for _, part := range result.Content {
		text += part.(*mcp.TextContent).Text
	}
	return text, result.IsError
}

func fakeEnviron(f *fakeServer) []string {
	return []string{"LISTEN_ADDR=" + strings.TrimPrefix(f.URL, "http://"), "MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret, "MARKET_PRICE_PROVIDERS=sim"}
}

func TestMCP_OffersWritesOnlyIfAllowed(t *testing.T) {
	f := newFakeServer(t)
	for _, c := range []struct {
		args   []string
		writes bool
	}{{nil, false}, {[]string{"--allow-writes"}, true}} {
		session := startMCP(t, fakeEnviron(f), c.args...)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var read, written []string
		for _, tool := range list.Tools {
			if tool.Annotations.ReadOnlyHint {
				read = append(read, tool.Name)
			} else {
				written = append(written, tool.Name)
			}
		}
		if want := "explain_price lookup_prices market_quotes price_at price_changes price_feed price_figures price_history providers run_items runs search_items status"; strings.Join(slices.Sorted(slices.Values(read)), " ") != want {
			t.Errorf("%v: got the tools %v, want %s", c.args, read, want)
		}
		want := ""
		if c.writes {
			want = "accept_price accept_provider cancel_run pause_provider resume_provider start_refresh"
		}
		if got := strings.Join(slices.Sorted(slices.Values(written)), " "); got != want {
			t.Errorf("%v: got the tools that write %q, want %q", c.args, got, want)
		}
		text, failed := toolText(t, session, "start_refresh", map[string]any{})
		if failed == c.writes {
			t.Errorf("%v: start_refresh: got %s, want an error: %t", c.args, text, !c.writes)
		}
	}
}

func TestMCP_ReturnsResultsAndErrors(t *testing.T) {
	f := newFakeServer(t)
	session := startMCP(t, fakeEnviron(f))
	for _, c := range []struct {
		tool   string
		args   map[string]any
		failed bool
		want   string
	}{
		{"status", nil, false, `"freshness"`},
		{"runs", nil, false, `"items"`},
		{"search_items", map[string]any{"words": "redline"}, false, `"items"`},
		{"explain_price", map[string]any{"appId": 730}, true, "name"},
		{"explain_price", map[string]any{"name": "A", "color": "red"}, true, "color"},
		{"run_items", map[string]any{"id": "99"}, true, "404"},
	} {
		text, failed := toolText(t, session, c.tool, c.args)
		if failed != c.failed || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: got %.300s, error: %t; want %q, error: %t", c.tool, c.args, text, failed, c.want, c.failed)
		}
	}
}

func TestMCP_NeedsTheSecret(t *testing.T) {
	var errs strings.Builder
	p := Program{Args: []string{"mcp"}, Environ: []string{"DATA_DIR=" + t.TempDir()}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs, Now: time.Now}
	if code := p.Run(t.Context()); code == 0 || !strings.Contains(errs.String(), "MARKET_PRICE_SYNC_SECRET") {
		t.Errorf("got exit code %d and %q, want a fault that names the secret", code, errs.String())
	}
}
