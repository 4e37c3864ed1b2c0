package market_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"assay/internal/event"
	"assay/internal/market"
	"assay/internal/wallet"
)

// overdue runs ReportOverdue and returns all events so far, as "trade state since".
func (w *fixture) overdue() (out []string) {
	w.Helper()
	w.must(w.m.ReportOverdue(w.Context()))
	events, err := event.List(w.Context(), w.s, 1000)
	w.must(err)
	for _, e := range slices.Backward(events) {
		if e.Kind != event.TradeIsOverdue {
			continue
		}
		var o event.TradeOverdue
		w.must(json.Unmarshal(e.Data, &o))
		out = append(out, o.TradeID+" "+o.State+" "+o.Since.Format(time.RFC3339))
	}
	return out
}

func TestReportOverdue_ReportsEachTradeOnce(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.push("v", asset("1", "x"))
	w.fund("b")
	begin := w.clock()
	forgotten, done, reversed := w.sell("u", "b", "1", 100), w.sell("u", "b", "2", 100), w.sell("u", "b", "3", 100)
	stuck := w.sell("v", "b", "1", 100)
	for _, id := range []int64{done.ID, stuck.ID} {
		_, err := w.m.Complete(t.Context(), id)
		w.must(err)
	}
	_, err := w.m.Reverse(t.Context(), reversed.ID)
	w.must(err)
	w.advance(168*time.Hour - time.Microsecond)
	if got := w.overdue(); got != nil {
		t.Fatalf("before the limit: got %v, want none", got)
	}
	w.raw(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'v'`) // makes the settlement fail
	w.advance(time.Microsecond)
	if err := w.m.SettleDue(t.Context()); err == nil {
		t.Fatal("SettleDue of a changed account: got nil, want an error")
	}
	pending := strconv.FormatInt(forgotten.ID, 10) + " pending " + begin.Format(time.RFC3339)
	if got := w.overdue(); !slices.Equal(got, []string{pending}) {
		t.Errorf("at the limit: got %v, want %s", got, pending)
	}
	w.advance(10 * time.Minute)
	held := strconv.FormatInt(stuck.ID, 10) + " completed " + begin.Add(168*time.Hour).Format(time.RFC3339)
	for range 2 {
		if got := w.overdue(); !slices.Equal(got, []string{pending, held}) {
			t.Errorf("after the hold: got %v, want %s and %s", got, pending, held)
		}
	}
	if n, err := market.ReadOpenTrades(t.Context(), w.s); err != nil || n.Pending != 1 || n.Completed != 1 || n.Overdue != 2 {
		t.Errorf("ReadOpenTrades: got %+v, %v, want 1 pending, 1 completed, 2 overdue", n, err)
	}
	_, err = w.m.Complete(t.Context(), forgotten.ID)
	w.must(err)
	w.raw(`UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'v'`)
	w.advance(168*time.Hour + 10*time.Minute)
	w.must(w.m.SettleDue(t.Context()))
	if got := w.overdue(); len(got) != 2 {
		t.Errorf("after the settlement: got %v, want the same 2 events", got)
	}
	if n, err := market.ReadOpenTrades(t.Context(), w.s); err != nil || n.Pending+n.Completed+n.Overdue != 0 {
		t.Errorf("ReadOpenTrades: got %+v, %v, want zeros", n, err)
	}
	if got := wallet.PostingCounts(w.s); got["sale"] != 4 || got["completion"] != 3 || got["settlement"] != 3 || got["reversal"] != 1 {
		t.Errorf("got the postings %v, want 4 sales, 3 completions, 3 settlements, 1 reversal", got)
	}
}
