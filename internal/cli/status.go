package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/view"
)

// statusCmd shows the current refresh and how fresh prices are.
type statusCmd struct {
	Watch bool          `help:"Repeat until interrupted."`
	Every time.Duration `default:"2s" help:"Interval of --watch (200ms to 1h)."`
}

func (*statusCmd) examples() []example {
	return []example{
		{"status", "show the running or last refresh and the age of the prices"},
		{"status --watch", "repeat the status until Ctrl-C"},
		{"status --watch --every 10s --json", "print one JSON object per line, every ten seconds"},
	}
}

// Run prints the status once or, with --watch, until ctx ends.
func (c *statusCmd) Run(ctx context.Context, s *session) error {
	if c.Every < 200*time.Millisecond || c.Every > time.Hour {
		return &usageError{text: "--every must be 200ms to 1h"}
	}
	if !c.Watch {
		return show(ctx, s, statusRequest(), writeStatus)
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	now, err := call[view.Status](ctx, api, statusRequest())
	if err != nil {
		return err
	}
	return c.watch(ctx, s, api, now)
}

// watch prints the status repeatedly. While the server is unreachable, for example during a
// restart, it retries.
func (c *statusCmd) watch(ctx context.Context, s *session, api *client, now view.Status) error {
	screen := statusScreen{out: s.out, redraw: !s.out.json && s.isTerminal(s.Stdout), now: s.Now}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	for {
		if err := screen.show(&now); err != nil {
			return err
		}
		for {
			select {
			case <-ctx.Done():
				return nil // an interrupt is the normal end of --watch
			case <-tick.C:
			}
			latest, err := call[view.Status](ctx, api, statusRequest())
			if err == nil {
				now = latest
				break
			}
			var away *unreachableError
			if ctx.Err() == nil && !errors.As(err, &away) {
				return err
			}
			if ctx.Err() == nil {
				s.printf("%v; retrying", err)
			}
		}
	}
}

// statusScreen prints successive statuses. On a terminal each status replaces the previous
// one. Otherwise each status is one line.
type statusScreen struct {
	out    output
	redraw bool
	lines  int // height of the printed status
	now    func() time.Time
}

func (v *statusScreen) show(st *view.Status) error {
	if v.out.json {
		return v.out.object(st)
	}
	if !v.redraw {
		_, err := fmt.Fprintln(v.out.w, v.now().UTC().Format(time.TimeOnly)+" "+statusLine(st))
		return err
	}
	var text strings.Builder
	writeStatus(&text, st)
	if v.lines > 0 {
		// Move up to the start of the previous status and clear it.
		if _, err := fmt.Fprintf(v.out.w, "\x1b[%dA\x1b[J", v.lines); err != nil {
			return err
		}
	}
	v.lines = strings.Count(text.String(), "\n")
	_, err := io.WriteString(v.out.w, text.String())
	return err
}

// statusLine formats a status in one line.
func statusLine(st *view.Status) string {
	line := fmt.Sprintf("%s: %s of %s items, %s failed, %s; no price: %s; fresh %s, stale %s, unknown %s",
		runText(st.Status), count(st.TotalItems-st.PendingItems), count(st.TotalItems), count(st.FailedItems),
		requests(st.Usage.RequestCount), count(st.Missing.PendingItems),
		count(st.Freshness.Fresh), count(st.Freshness.Stale), count(st.Freshness.Unknown))
	if st.LastError != nil {
		line += "; last error: " + printable(*st.LastError)
	}
	return line
}

// runText describes the running or last refresh.
func runText(run view.RunStatus) string {
	if run.JobID == nil {
		return "no refresh yet"
	}
	text := "refresh " + *run.JobID
	if run.Forced {
		text += " (forced)"
	}
	if !run.Running {
		return text + " " + orDash(run.State) + outcomeText(run)
	}
	if run.Stage != nil && orDash(run.State) != "queued" {
		text += " running: " + *run.Stage
	} else {
		text += " queued"
	}
	if run.EtaSeconds != nil {
		text += ", about " + seconds(*run.EtaSeconds) + " left"
	}
	return text
}

// outcomeText describes the outcome of a refresh. The output shows it after the state.
func outcomeText(run view.RunStatus) string {
	if run.Outcome == nil {
		return ""
	}
	var words []string
	if *run.Outcome != orDash(run.State) {
		words = append(words, *run.Outcome)
	}
	if meaning := view.OutcomeText(*run.Outcome); meaning != "" && orDash(run.State) != "cancelled" {
		words = append(words, meaning)
	}
	return ": " + strings.Join(words, ", ")
}

// writeStatus prints a status as a table.
func writeStatus(w io.Writer, st *view.Status) {
	rows := [][]string{{"run", runText(st.Status)}}
	if st.Status.JobID != nil {
		rows = append(rows,
			[]string{"started", moment(st.Status.StartedAt)},
			[]string{"ended", moment(st.Status.FinishedAt)},
			[]string{"items", fmt.Sprintf("%s of %s done; %s updated, %s without a quote, %s failed",
				count(st.TotalItems-st.PendingItems), count(st.TotalItems), count(st.UpdatedItems), count(st.NoQuoteItems), count(st.FailedItems))},
			[]string{"skipped", skippedText(st.SkippedItems)},
			[]string{"requests", usageText(st.Usage)})
	}
	rows = append(rows, gapRows(st.Status.Gaps)...)
	if st.LastError != nil {
		rows = append(rows, []string{"last error", printable(*st.LastError)})
	}
	rows = append(rows,
		[]string{"no price", fmt.Sprintf("%s due or in progress, %s waiting for a retry", count(st.Missing.PendingItems), count(st.Missing.WaitingItems))},
		[]string{"prices", fmt.Sprintf("%s fresh, %s stale, %s unknown; the oldest is %s old",
			count(st.Freshness.Fresh), count(st.Freshness.Stale), count(st.Freshness.Unknown), seconds(st.Freshness.OldestSeconds))})
	table(w, rows)
}

// usageText formats the number of requests of a run, in total and by provider.
func usageText(u view.Usage) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(u.ByProvider)) {
		parts = append(parts, printable(name)+" "+count(u.ByProvider[name]))
	}
	if len(parts) == 0 {
		return count(u.RequestCount)
	}
	return count(u.RequestCount) + ": " + strings.Join(parts, ", ")
}
