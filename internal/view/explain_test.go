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

// A name that is missing from the newest response keeps its last amounts. Clients can see these
// amounts, so the reason must not contradict them.
func TestWhy_ExplainsMissingQuoteWithStoredAmounts(t *testing.T) {
	e := &explainer{}
	for _, tt := range []struct {
		snap refresh.MarketSnapshot
		want string
	}{
		{refresh.MarketSnapshot{Reason: pricing.NotOffered}, "no offers or sales"},
		{refresh.MarketSnapshot{Reason: pricing.NotOffered, Ask: money.Scale}, "the newest response does not contain this item; the amounts are from an earlier response"},
		{refresh.MarketSnapshot{Reason: pricing.NotOffered, Sale: money.Scale}, "the newest response does not contain this item; the amounts are from an earlier response"},
	} {
		if got := e.why(&StoredSnapshot{MarketSnapshot: tt.snap}); got != tt.want {
			t.Errorf("ask %s, sale %s: got %q, want %q", tt.snap.Ask, tt.snap.Sale, got, tt.want)
		}
	}
}

// On its first day, an item is compared with its first price. That price is less than 24 hours
// old, so the sentence must allow for a shorter time.
func TestWindowText_AllowsForShortHistory(t *testing.T) {
	for _, w := range []pricing.Window{pricing.SinceDay, pricing.SinceWeek} {
		if got := windowText(w); !strings.HasSuffix(got, "or the first price after that") {
			t.Errorf("windowText(%s) = %q, want the first price as an alternative", w, got)
		}
	}
}

// While a price is held, the item keeps its earlier price, which is not the newest estimate.
func TestWriteEstimate_NamesHeldPriceAnEstimate(t *testing.T) {
	for held, want := range map[money.Micro]string{0: "the price is their median: 300 USD", 300 * money.Scale: "the estimate is their median: 300 USD"} {
		var all []string
		e := &explainer{item: &StoredItem{UsedMarkets: 3, Consensus: 300 * money.Scale}, policy: pricing.Policy{Currency: "USD"}}
		e.state.Held.Candidate = held
		e.writeEstimate(&Explanation{Compared: 3, Agreeing: 3, DecidedBy: string(pricing.ByMajority)}, func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
		if got := strings.Join(all, " "); !strings.Contains(got, want) {
			t.Errorf("held price %s: got %q, want %q in it", held, got, want)
		}
	}
}

// An accepted price keeps its previous status until the next estimate. The sentences explain
// this status until then.
func TestWriteGuard_ExplainsAcceptedPrice(t *testing.T) {
	at := time.Date(2026, 11, 22, 17, 47, 0, 0, time.UTC)
	for estimated, want := range map[time.Time]bool{at.Add(-time.Minute): true, at: false, at.Add(time.Hour): false} {
		var all []string
		e := &explainer{item: &StoredItem{EstimatedAt: estimated}, state: pricing.State{ReleasedAt: at}, set: pricing.NewSet(money.Scale), now: at.Add(2 * time.Hour)}
		e.writeGuard(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
		if got := strings.Contains(strings.Join(all, " "), "accepted the held price at 2026-11-22 17:47 UTC"); got != want {
			t.Errorf("estimated at %s: got %q, want the accepted price in it: %v", estimated, all, want)
		}
	}
}
