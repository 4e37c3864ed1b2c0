package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// A name that vanished from a response keeps its last amounts, so that they can be
// shown. The reason must not deny what stands beside it.
func TestWhy_AVanishedQuoteIsNotSaidToBeNothing(t *testing.T) {
	e := &explainer{}
	for _, tt := range []struct {
		snap refresh.Snapshot
		want string
	}{
		{refresh.Snapshot{Reason: pricing.NotOffered}, "nothing is offered or sold"},
		{refresh.Snapshot{Reason: pricing.NotOffered, Ask: money.Scale}, "the newest response does not have it; the amounts are those of an earlier one"},
		{refresh.Snapshot{Reason: pricing.NotOffered, Sale: money.Scale}, "the newest response does not have it; the amounts are those of an earlier one"},
	} {
		if got := e.why(&StoredSnapshot{Snapshot: tt.snap}); got != tt.want {
			t.Errorf("ask %s, sale %s: %q, want %q", tt.snap.Ask, tt.snap.Sale, got, tt.want)
		}
	}
}

// In its first day an item is compared with its first price, which is younger than
// the sentence would say otherwise.
func TestWindowText_AllowsForAShortHistory(t *testing.T) {
	for _, w := range []pricing.Window{pricing.SinceDay, pricing.SinceWeek} {
		if got := windowText(w); !strings.HasSuffix(got, "or the first one since") {
			t.Errorf("%s: %q", w, got)
		}
	}
}

// An accepted price keeps the status of the last estimate until the next one: the
// sentences say why, and no longer once it was estimated again.
func TestSayGuard_ExplainsAnAcceptedPrice(t *testing.T) {
	at := time.Date(2026, 11, 22, 17, 47, 0, 0, time.UTC)
	for estimated, want := range map[time.Time]bool{at.Add(-time.Minute): true, at: false, at.Add(time.Hour): false} {
		var all []string
		e := &explainer{item: &StoredItem{EstimatedAt: estimated}, state: pricing.State{ReleasedAt: at}, set: pricing.NewSet(money.Scale), now: at.Add(2 * time.Hour)}
		e.sayGuard(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
		if got := strings.Contains(strings.Join(all, " "), "accepted at 2026-11-22 17:47 UTC the price that was held"); got != want {
			t.Errorf("estimated %s: %q", estimated, all)
		}
	}
}
