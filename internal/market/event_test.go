package market_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/event"
	"assay/internal/market"
)

// events returns all events so far as "kind seller>buyer name state".
func (w *fixture) events() (out []string) {
	w.Helper()
	w.must(event.NewFeed(w.s, nil).Number(w.Context()))
	found, err := event.After(w.Context(), w.s.Read, 0, 1000, false)
	w.must(err)
	for _, e := range found {
		var d struct{ SellerID, BuyerID, MarketHashName, State, Currency string }
		w.must(json.Unmarshal(e.Data, &d))
		out = append(out, fmt.Sprintf("%s %s>%s %s %s %s", e.Kind, d.SellerID, d.BuyerID, d.MarketHashName, d.Currency, d.State))
	}
	return out
}

func TestEvents_AreWrittenOncePerChange(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "y"), asset("3", "z"), asset("4", "q"))
	w.fund("b")
	kept, undone := w.sell("u", "b", "1", 100), w.sell("u", "b", "2", 100)
	cancelled := w.mustList("u", "3", 100)
	w.mustList("u", "4", 100)
	for range 2 { // a repeated request changes nothing
		_, err := w.m.Cancel(t.Context(), cancelled.ID)
		w.must(err)
		_, err = w.m.Complete(t.Context(), kept.ID)
		w.must(err)
		_, err = w.m.Reverse(t.Context(), undone.ID)
		w.must(err)
	}
	if _, err := w.m.CancelAll(t.Context(), []int64{cancelled.ID, 99}); err != nil {
		t.Error(err)
	}
	if _, err := w.buy(cancelled.ID, "b"); err == nil {
		t.Error("purchase of a cancelled listing: got no error, want one")
	}
	w.advance(time.Second)
	w.push("u", asset("1", "x"), asset("2", "y"), asset("3", "z"))
	w.advance(168 * time.Hour)
	for range 2 {
		w.must(w.m.SettleDue(t.Context()))
	}
	want := []string{
		"listing.sold u> x USD sold", "listing.sold u> y USD sold",
		"listing.cancelled u> z USD cancelled", "trade.completed u>b x USD completed", "trade.reversed u>b y USD reversed",
		"listing.expired u> q USD expired", "trade.settled u>b x USD settled",
	}
	if got := w.events(); !slices.Equal(got, want) {
		t.Errorf("got the events %q, want %q", got, want)
	}
	if listed, err := event.List(t.Context(), w.s, 10); err != nil || len(listed) != 0 {
		t.Errorf("got %v, %v in the list of rare events, want none", listed, err)
	}
}

func TestEvents_OfASaleHaveItsFigures(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	w.fund("b")
	sold := w.sell("u", "b", "1", 1000)
	_, err := w.m.Complete(t.Context(), sold.ID)
	w.must(err)
	w.must(event.NewFeed(w.s, nil).Number(t.Context()))
	found, err := event.After(t.Context(), w.s.Read, 0, 10, false)
	w.must(err)
	place := `"appId":730,"marketHashName":"x","phase":"","contextId":"2","assetId":"1"`
	for i, want := range []string{
		fmt.Sprintf(`{"listingId":"%d","tradeId":"%d","sellerId":"u",%s,"price":1000,"currency":"USD","state":"%s"}`, sold.ListingID, sold.ID, place, market.Sold),
		fmt.Sprintf(`{"tradeId":"%d","listingId":"%d","sellerId":"u","buyerId":"b",%s,"price":1000,"fee":%d,"net":%d,"currency":"USD","state":"%s"}`,
			sold.ID, sold.ListingID, place, sold.Fee, sold.Net, market.Completed),
	} {
		if got := string(found[i].Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
