package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/config"
	"assay/internal/view"
)

// program returns a Program that uses the server f.
func program(f *fakeServer, args ...string) (Program, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return Program{
		Args: args,
		Environ: []string{
			"LISTEN_ADDR=" + strings.TrimPrefix(f.URL, "http://"),
			"MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret,
			"PLATFORM_API_TOKEN=" + fakePlatformToken,
		},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
	}, &out, &errs
}

func TestRefresh_InterruptedWaitReportsThatTheRunContinues(t *testing.T) {
	f := newFakeServer(t)
	ctx, interrupt := context.WithCancel(context.Background())
	f.jobs = []string{jobRunning}
	f.onPoll = func(int) { interrupt() }
	p, out, errs := program(f, "refresh", "--wait")
	if code := p.Run(ctx); code != exitInterrupted {
		t.Errorf("got exit code %d, want %d", code, exitInterrupted)
	}
	for _, want := range []string{"refresh 17 continues", "`assay cancel 17` cancels it"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("standard error: got\n%s\nwant %q in it", errs, want)
		}
	}
	if out.Len() != 0 {
		t.Errorf("got standard output %s, want none", out)
	}
}

func TestRefresh_WaitReturnsExitCodeOfOutcome(t *testing.T) {
	for _, c := range []struct {
		job  string
		code int
		want []string
	}{
		{jobFinished, exitOK, nil},
		{jobPartial, exitIncomplete, []string{
			"refresh 17 finished in 12.5 s: partial", "missing +3 items \\(0.01 %\\): failed",
			"missing +sim/fjord \\(100 %\\): failed, timeout", "last error +sim: timeout",
		}},
		{strings.NewReplacer(`"finished"`, `"failed"`, `"partial"`, `"failed"`).Replace(jobPartial), exitRunFailed, []string{"refresh 17 failed in 12.5 s\n"}},
		{strings.NewReplacer(`"finished"`, `"cancelled"`).Replace(jobPartial), exitIncomplete, []string{"refresh 17 cancelled in 12.5 s: partial"}},
	} {
		f := newFakeServer(t)
		f.jobs = []string{c.job}
		p, out, _ := program(f, "refresh", "--wait")
		if code := p.Run(context.Background()); code != c.code {
			t.Errorf("got exit code %d, want %d, output:\n%s", code, c.code, out)
		}
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(out.String()) {
				t.Errorf("output: got\n%s\nwant %q in it", out, want)
			}
		}
	}
}

func TestRefresh_WaitHandlesJobRemovedAtItsEnd(t *testing.T) {
	for _, c := range []struct {
		jobs []string
		code int
		out  string
		errs string
	}{
		{[]string{jobApply, jobRemoved}, exitOK, "refresh 17 finished", ""},
		{[]string{jobRunning, jobRemoved}, exitFailed, "", "MARKET_PRICE_JOB_RETENTION_MIN_JOBS"},
		{[]string{jobRemoved}, exitFailed, "", "the refresh has ended"},
	} {
		f := newFakeServer(t)
		f.jobs = c.jobs
		p, out, errs := program(f, "refresh", "--wait")
		if code := p.Run(context.Background()); code != c.code {
			t.Errorf("got exit code %d, want %d", code, c.code)
		}
		if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("got output %q, errors %q, want %q and %q in them", out, errs, c.out, c.errs)
		}
	}
}

func TestStatus_WatchPrintsOneObjectPerLineUntilInterrupted(t *testing.T) {
	f := newFakeServer(t)
	ctx, interrupt := context.WithCancel(context.Background())
	p, _, errs := program(f, "status", "--watch", "--every", "200ms", "--json")
	lines := &lineCounter{after: 3, then: interrupt}
	p.Stdout = lines
	if code := p.Run(ctx); code != exitOK {
		t.Errorf("got exit code %d, want 0: %s", code, errs)
	}
	for line := range strings.Lines(lines.text.String()) {
		var st view.Status
		if err := json.Unmarshal([]byte(strings.TrimSpace(line)), &st); err != nil || st.TotalItems != 30325 {
			t.Errorf("line %q: got error %v, want a status of 30,325 items", line, err)
		}
	}
}

// lineCounter calls then after the given number of writes.
type lineCounter struct {
	text  strings.Builder
	after int
	then  func()
}

func (l *lineCounter) Write(b []byte) (int, error) {
	if l.after--; l.after == 0 {
		l.then()
	}
	return l.text.Write(b)
}

func TestStatus_ShowsGapsOfEndedRun(t *testing.T) {
	outcome := func(state, outcome string) view.RunStatus {
		return view.RunStatus{JobID: new("17"), State: &state, Outcome: &outcome}
	}
	for want, run := range map[string]view.RunStatus{
		"refresh 17 finished: complete":                                   outcome("finished", "complete"),
		"refresh 17 failed: no item got a price and an error occurred":    outcome("failed", "failed"),
		"refresh 17 finished: partial, some items or markets are missing": outcome("finished", "partial"),
		"refresh 17 cancelled: partial":                                   outcome("cancelled", "partial"),
	} {
		if got := runText(run); got != want {
			t.Errorf("runText() = %q, want %q", got, want)
		}
	}
	var st view.Status
	if err := json.Unmarshal([]byte(statusPartial), &st); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writeStatus(&out, &st)
	for _, want := range []string{
		"finished: partial", "missing     3 items (0.01 %): failed\n", "missing     1 item (0 %): the provider failed or requested a delay\n",
		"missing     sim/fjord (100 %): not in the response, timeout\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output: got\n%s\nwant %q in it", &out, want)
		}
	}
}

func TestStatusScreen_OverwritesPreviousStatus(t *testing.T) {
	var out bytes.Buffer
	screen := statusScreen{out: output{w: &out}, redraw: true, now: time.Now}
	for range 2 {
		if err := screen.show(&view.Status{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "\x1b[3A\x1b[J"); got != 1 {
		t.Errorf("got %d cursor moves, want 1 of three lines:\n%q", got, out.String())
	}
}

func TestProgress_PrintsLinesForNewStagesAndEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newProgress(&out, false, func() time.Time { return now })
	for _, step := range []struct {
		after time.Duration
		stage string
	}{{0, "plan"}, {time.Second, "plan"}, {0, "estimate"}, {4 * time.Second, "estimate"}, {time.Second, "estimate"}} {
		now = now.Add(step.after)
		p.showJob(&view.Job{ID: "1", State: "running", Stage: step.stage})
	}
	p.end()
	want := "refresh 1: plan, 0 of 0 items, 0 requests\nrefresh 1: estimate, 0 of 0 items, 0 requests\nrefresh 1: estimate, 0 of 0 items, 0 requests\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestProgress_ShowsBarOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, true, time.Now)
	p.showJob(&view.Job{ID: "1", State: "queued"})
	p.showJob(&view.Job{ID: "1", State: "running", Stage: "estimate", TotalItems: 100, PendingItems: 50})
	p.showJob(&view.Job{ID: "1", State: "finished", Stage: "done", TotalItems: 100})
	p.end()
	for _, want := range []string{"refresh 1: queued", "100%", "100/100"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output: got %q, want %q in it", out.String(), want)
		}
	}
}

func TestClient_DoesNotFollowRedirects(t *testing.T) {
	redirected := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { redirected = true }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	c := newClient(here.URL, map[string]credential{config.RoleMarket: {header: "x-market-sync-secret", value: "s"}})
	err := c.do(context.Background(), statusRequest(), nil)
	if err == nil || redirected {
		t.Errorf("got error %v, redirect followed %v, want an error and no second request", err, redirected)
	}
}

func TestSegment_EscapesNames(t *testing.T) {
	for name, want := range map[string]string{
		"a/b?c#d%": "a%2Fb%3Fc%23d%25", "..": "%2E%2E", "x\ny ": "x%0Ay%20", "★": "%E2%98%85", "a.b": "a.b",
	} {
		if got := segment(name); got != want {
			t.Errorf("segment(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPrintable_EscapesTerminalControls(t *testing.T) {
	for text, want := range map[string]string{
		"★ Karambit": "★ Karambit", "a\x1b[2Jb": `"a\x1b[2Jb"`, "end ": `"end "`, "\u202eabc": `"\u202eabc"`, "a\tb": `"a\tb"`, "": "",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestBaseURL_IsReachableLocally(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080", "0.0.0.0:80": "http://127.0.0.1:80", ":8080": "http://127.0.0.1:8080",
		"[::]:8080": "http://[::1]:8080", "example.test:1": "http://example.test:1",
	} {
		if got := baseURL(addr); got != want {
			t.Errorf("baseURL(%q) = %q, want %q", addr, got, want)
		}
	}
}

func TestCell_CutsLongNames(t *testing.T) {
	for name, want := range map[string]string{
		"★ Karambit":                    "★ Karambit",
		strings.Repeat("★", 64):         strings.Repeat("★", 64),
		strings.Repeat("★", 65):         strings.Repeat("★", 63) + "…",
		strings.Repeat("x", 512):        strings.Repeat("x", 63) + "…",
		"a\n" + strings.Repeat("x", 99): `"a\n` + strings.Repeat("x", 59) + "…",
	} {
		if got := cell(name); got != want {
			t.Errorf("cell(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRequests_SingularAndPlural(t *testing.T) {
	for n, want := range map[int64]string{0: "0 requests", 1: "1 request", 2000: "2,000 requests"} {
		if got := requests(n); got != want {
			t.Errorf("requests(%d) = %s, want %s", n, got, want)
		}
	}
}
