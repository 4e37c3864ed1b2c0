package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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

// TestMCP_NamesPhases looks up items with and without a phase.
func TestMCP_NamesPhases(t *testing.T) {
	for tool, path := range map[string]string{"lookup_prices": "/api/prices/lookup", "market_quotes": "/api/prices/quotes"} {
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			body = r.URL.Path + " " + string(text)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"items":[]}`)
		}))
		defer server.Close()
		session := startMCP(t, []string{"LISTEN_ADDR=" + strings.TrimPrefix(server.URL, "http://"), "MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret})
		args := map[string]any{"names": []string{"A"}, "items": []map[string]any{{"name": "B", "phase": "Ruby"}, {"name": "C", "appId": 440}}}
		if text, failed := toolText(t, session, tool, args); failed {
			t.Fatalf("%s: got the error %s, want none", tool, text)
		}
		for _, want := range []string{path, `{"appId":730,"marketHashName":"A"}`, `{"appId":730,"marketHashName":"B","phase":"Ruby"}`, `{"appId":440,"marketHashName":"C"`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got the request %s, want %s in it", tool, body, want)
			}
		}
	}
}

// TestMCP_ContinuesAfterAMalformedLine sends malformed lines while a request is in progress. All
// requests before and after them must get their responses.
func TestMCP_ContinuesAfterAMalformedLine(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		began <- true
		<-finish
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"done":1}`)
	}))
	defer server.Close()
	in, input := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		p := Program{
			Args: []string{"mcp"}, Environ: []string{"LISTEN_ADDR=" + strings.TrimPrefix(server.URL, "http://"), "MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret},
			Stdin: in, Stdout: out, Stderr: io.Discard, Now: time.Now,
		}
		ended <- p.Run(context.Background())
	}()
	send := func(lines ...string) {
		for _, line := range lines {
			if _, err := io.WriteString(input, line+"\n"); err != nil {
				t.Error(err)
			}
		}
	}
	lines := bufio.NewScanner(output)
	read := func() string {
		lines.Scan()
		return lines.Text()
	}
	wantLine := func(parts ...string) {
		t.Helper()
		line := read()
		for _, part := range parts {
			if !strings.Contains(line, part) {
				t.Errorf("got the line %s, want %s in it", line, part)
			}
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	wantLine(`"id":1`, `"result"`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"status","arguments":{}}}`)
	<-began
	for _, line := range []string{`{"jsonrpc":`, `not JSON`, `"text"`, `{"method":7}`, `[]`, `{"jsonrpc":"2.0","id":8,"method":"ping"} {}`} {
		go send(line)
		wantLine(`"id":null`, `-32700`)
	}
	go send("", `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	wantLine(`"id":3`, `"result"`)
	close(finish)
	wantLine(`"id":2`, `done`)
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if code := <-ended; code != exitOK {
		t.Errorf("got exit code %d, want 0 after the end of the input", code)
	}
}

func TestMCP_NeedsTheSecret(t *testing.T) {
	var errs strings.Builder
	p := Program{Args: []string{"mcp"}, Environ: []string{"DATA_DIR=" + t.TempDir()}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs, Now: time.Now}
	if code := p.Run(t.Context()); code == 0 || !strings.Contains(errs.String(), "MARKET_PRICE_SYNC_SECRET") {
		t.Errorf("got exit code %d and %q, want a fault that names the secret", code, errs.String())
	}
}
