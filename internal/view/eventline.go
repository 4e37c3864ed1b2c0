package view

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"assay/internal/admission"
	"assay/internal/event"
)

// EventLine is an event as a sentence with a link.
type EventLine struct {
	ID   int64
	Kind string
	At   time.Time
	Text string // a sentence
	Href string // path on the operator's page; empty: none
}

// EventLineOf describes an event in a sentence. It links to the run, provider, user, trade or
// listing of the event.
func EventLineOf(e event.Stored) EventLine {
	var d struct {
		Provider, Host, Market, Budget, Detail, JobID, UserID, Status, TradeID, ListingID, State, LastError string
		Left, Limit, TotalItems, UpdatedItems                                                               int64
	}
	line := EventLine{ID: e.ID, Kind: string(e.Kind), At: e.At, Text: string(e.Kind)}
	if json.Unmarshal(e.Data, &d) != nil {
		return line
	}
	place := strings.Join(strings.Fields(d.Provider+" "+d.Host+" "+d.Market), " ")
	detail := strings.TrimPrefix(strings.TrimPrefix(d.Detail, d.Provider+": "), d.Market+": quarantined: ")
	say := func(href, format string, args ...any) {
		line.Href, line.Text = href, fmt.Sprintf(format, args...)
	}
	run, from := "/runs/"+url.PathEscape(d.JobID), "/providers/"+url.PathEscape(d.Provider)
	priced := humanize.Comma(d.UpdatedItems) + " of " + countText(d.TotalItems, "item", "items")
	switch e.Kind {
	case event.JobFinished:
		say(run, "Run %s priced %s.", d.JobID, priced)
	case event.JobPartial:
		say(run, "Run %s priced %s; %s.", d.JobID, priced, OutcomeText("partial"))
	case event.JobFailed:
		say(run, "Run %s failed: %s", d.JobID, sentenceEnd(d.LastError, OutcomeText("failed")))
	case event.Degraded:
		say(from, "Fetches of %s fail: %s", place, sentenceEnd(detail, "see its requests"))
	case event.WentDown:
		say(from, "%s is down: %s", place, sentenceEnd(detail, "see its requests"))
	case event.Quarantined:
		say(from, "A response of %s is in quarantine: %s", place, sentenceEnd(detail, "it failed validation"))
	case event.CameUp:
		say(from, "%s is up: %s", place, sentenceEnd(detail, "it responds again"))
	case event.BudgetIsLow:
		say(from, "The budget (%s) of %s is low: %s of %s left.", d.Budget, place, humanize.Comma(d.Left), countText(d.Limit, "request", "requests"))
	case event.LedgerHasProblem:
		say("/ledger?user="+url.QueryEscape(d.UserID), "The ledger of user %s does not verify: %s.", d.UserID, d.Status)
	case event.InventoryIsPriced:
		say("/users/"+url.PathEscape(d.UserID), "%s.", capital(event.Text(e.Kind, e.Data)))
	case event.TradeIsOverdue:
		say("/trades/"+url.PathEscape(d.TradeID), "Trade %s is overdue: it is still %s.", d.TradeID, d.State)
	case event.TradeCompleted, event.TradeReversed, event.TradeSettled:
		say("/trades/"+url.PathEscape(d.TradeID), "%s.", capital(event.Text(e.Kind, e.Data)))
	case event.ListingSold, event.ListingCancelled, event.ListingExpired:
		say("/listings/"+url.PathEscape(d.ListingID), "%s.", capital(event.Text(e.Kind, e.Data)))
	}
	return line
}

// EventLines returns a page of events, newest first. If ofMarket is true, it returns the events of
// single inventories, listings and trades, otherwise all other events. It omits price changes.
func (r *OverviewReader) EventLines(ctx context.Context, ofMarket bool, after string, limit int) (Page[EventLine], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[EventLine]{}, err
	}
	defer leave()
	list, name, before := event.ListBefore, "events", int64(math.MaxInt64)
	if ofMarket {
		list, name = event.ListMarketBefore, "market_events"
	}
	if err := readCursor(after, name, &before); err != nil {
		return Page[EventLine]{}, err
	}
	rows, err := list(ctx, r.o.Store, before, limit+1)
	if err != nil {
		return Page[EventLine]{}, err
	}
	return page(rows, limit, func(e *event.Stored) EventLine { return EventLineOf(*e) }, func(e *event.Stored) *string { return cursor(name, e.ID) }), nil
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
