package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"assay/internal/config"
	"assay/internal/event"
	"assay/internal/view"
)

// eventsCmd lists the last events, or all events after a number.
type eventsCmd struct {
	After  *int64 `placeholder:"NUMBER" help:"List the events after this number, oldest first and with price changes, as GET /api/events does. 0: from the first event, if none is deleted yet."`
	Limit  int    `default:"1000" help:"With --after and without --follow: maximum number of events, 1 to 100000."`
	Follow bool   `help:"With --after: wait for further events and print each, until interrupted."`
}

func (*eventsCmd) examples() []example {
	return []example{
		{"events", "list the last 50 events of runs, providers, budgets and the ledger, newest first"},
		{"events --json", "print them as JSON, with all their data"},
		{"events --after 1774000000000830", "list the events after event 1774000000000830, in the order of commits"},
		{"events --after 1774000000000830 --follow --json", "print one JSON object per event, as they happen"},
	}
}

// Run prints events once or, with --follow, until ctx ends.
func (c *eventsCmd) Run(ctx context.Context, s *session) error {
	switch {
	case c.Follow && c.After == nil:
		return &usageError{text: "--follow needs --after: give the number of the last event that you have, or 0"}
	case c.After != nil && *c.After < 0:
		return &usageError{text: "--after must be the number of an event, or 0"}
	case c.Limit < 1 || c.Limit > 100_000:
		return &usageError{text: "--limit must be 1 to 100000"}
	}
	api, err := s.server()
	switch {
	case err != nil:
		return err
	case c.Follow:
		return c.follow(ctx, s, api)
	case c.After != nil:
		return c.list(ctx, s, api)
	}
	debug, err := call[view.JobDebug](ctx, api, request{path: marketPrices + "/job-debug", as: config.RoleMarket})
	if err != nil {
		return err
	}
	page := view.Page[view.Event]{Items: debug.Events}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"EVENT", "TIME", "KIND", "DATA"}}
		for i := range page.Items {
			rows = append(rows, eventRow(page.Items[i].ID, &page.Items[i]))
		}
		table(w, rows)
	})
}

// eventRow returns the cells of an event. For price changes, the data cell contains only their
// number.
func eventRow(number string, e *view.Event) []string {
	data := string(e.Data)
	var changes struct{ Items []json.RawMessage }
	if e.Kind == string(event.PriceChanged) && json.Unmarshal(e.Data, &changes) == nil {
		data = plural(int64(len(changes.Items)), "price change", "price changes")
	}
	return []string{number, moment(&e.At), printable(e.Kind), printable(data)}
}

func eventsRequest(after string, limit int, wait time.Duration) request {
	return request{
		path: "/api/events", as: config.RoleMarket,
		query: filter("after", after, "limit", strconv.Itoa(limit), "wait", unlessZero(int64(wait/time.Second))),
	}
}

// list prints up to Limit events, page by page.
func (c *eventsCmd) list(ctx context.Context, s *session, api *client) error {
	all := view.Events{Items: []view.NumberedEvent{}, Next: strconv.FormatInt(*c.After, 10)}
	for !all.UpToDate && len(all.Items) < c.Limit {
		page, err := call[view.Events](ctx, api, eventsRequest(all.Next, min(pageSize, c.Limit-len(all.Items)), 0))
		if err != nil {
			return err
		}
		all.Items, all.Next, all.UpToDate = append(all.Items, page.Items...), page.Next, page.UpToDate
	}
	return s.out.result(all, func(w io.Writer) {
		rows := [][]string{{"NUMBER", "TIME", "KIND", "DATA"}}
		for i := range all.Items {
			rows = append(rows, eventRow(all.Items[i].Number, &all.Items[i].Event))
		}
		table(w, rows)
		if !all.UpToDate {
			_, _ = fmt.Fprintf(w, "There are more events: use --after %s.\n", all.Next)
		}
	})
}

const (
	// followWait is how long the server waits for an event before it responds. It is shorter
	// than callTimeout.
	followWait = 20 * time.Second
	// followRetry is the pause after a request without a response.
	followRetry = time.Second
)

// follow prints events until ctx ends. While the server is unreachable, it retries.
func (c *eventsCmd) follow(ctx context.Context, s *session, api *client) error {
	for after := strconv.FormatInt(*c.After, 10); ctx.Err() == nil; {
		page, err := call[view.Events](ctx, api, eventsRequest(after, pageSize, followWait))
		var away *unreachableError
		switch {
		case ctx.Err() != nil:
			continue // an interrupt is the normal end of --follow
		case errors.As(err, &away):
			s.printf("%v; retrying", err)
			select {
			case <-ctx.Done():
			case <-time.After(followRetry):
			}
			continue
		case err != nil:
			return err
		}
		for i := range page.Items {
			if err := c.printEvent(s, &page.Items[i]); err != nil {
				return err
			}
		}
		after = page.Next
	}
	return nil
}

// printEvent prints an event on one line.
func (*eventsCmd) printEvent(s *session, e *view.NumberedEvent) error {
	if s.out.json {
		return s.out.object(e)
	}
	row := eventRow(e.Number, &e.Event)
	_, err := fmt.Fprintf(s.out.w, "%s  %s  %s  %s\n", row[0], row[1], row[2], row[3])
	return err
}
