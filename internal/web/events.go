package web

import (
	"time"

	"assay/internal/event"
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
		out = append(out, eventLine{Kind: e.Kind, At: e.At, What: event.Text(event.Kind(e.Kind), e.Data)})
	}
	return out
}
