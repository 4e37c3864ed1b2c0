package web

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"assay/internal/view"
)

// recentEvents is the number of events on the overview.
const recentEvents = 8

// eventLine is one row of the list of events.
type eventLine struct {
	Kind string
	At   time.Time
	What string
}

func eventLines(events []view.Event) []eventLine {
	var out []eventLine
	for _, e := range events[:min(len(events), recentEvents)] {
		out = append(out, eventLine{Kind: e.Kind, At: e.At, What: eventText(e)})
	}
	return out
}

// eventText describes an event. It returns "" for an unknown kind.
func eventText(e view.Event) string {
	var d struct {
		Provider, Host, Market, Budget, Detail, JobID, UserID, Status, TradeID, State string
		Left, Limit, TotalItems, UpdatedItems                                         int64
	}
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return ""
	}
	place := strings.Join(slices.DeleteFunc([]string{d.Provider, d.Host, d.Market}, func(s string) bool { return s == "" }), " ")
	switch e.Kind {
	case "job.finished", "job.partial", "job.failed":
		return "run " + d.JobID + ": " + formatCount(d.UpdatedItems) + " of " + formatCount(d.TotalItems) + " items priced"
	case "budget.low":
		return place + ": " + formatCount(d.Left) + " of " + formatCount(d.Limit) + " left (" + d.Budget + ")"
	case "provider.down", "provider.quarantined", "provider.up":
		return place + ": " + strings.TrimPrefix(d.Detail, d.Provider+": "+d.Market+": quarantined: ")
	case "ledger.problem":
		return "user " + d.UserID + ": " + d.Status
	case "trade.overdue":
		return "trade " + d.TradeID + ": still " + d.State
	}
	return ""
}
