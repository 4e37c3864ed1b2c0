package view

import (
	"strings"
	"testing"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/store"
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
		if got := e.why(&store.MarketSnapshot{Snapshot: tt.snap}); got != tt.want {
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
