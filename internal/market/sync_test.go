package market_test

import (
	"strconv"
	"testing"

	"assay/internal/fault"
	"assay/internal/market"
)

func TestSync_ExpiresListingsOfMissingAssets(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	one, two := w.mustList("u", "1", 1), w.mustList("u", "2", 1)
	w.push("u", asset("2", "x"))
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("got the states %s and %s, want expired and active", w.state(one.ID), w.state(two.ID))
	}
	_, err := w.buy(one.ID, "b")
	w.wantFault(err, fault.Conflict, "listing_expired")
	_, err = w.m.Cancel(t.Context(), one.ID)
	w.wantFault(err, fault.Conflict, "listing_expired")
}

func TestSync_ExpiresListingsWithTooLargeAmounts(t *testing.T) {
	w := newFixture(t)
	five := asset("1", "x")
	five.Amount = 5
	w.push("u", five)
	l := w.mustList("u", "1", 1)
	five.Amount = 6
	w.push("u", five)
	if s := w.state(l.ID); s != market.Active {
		t.Errorf("listing of 5 with 6 in the inventory: got %s, want active", s)
	}
	five.Amount = 4
	w.push("u", five)
	if s := w.state(l.ID); s != market.Expired {
		t.Errorf("listing of 5 with 4 in the inventory: got %s, want expired", s)
	}
	if l := w.mustList("u", "1", 1); l.Amount != 4 {
		t.Errorf("new listing: got the amount %d, want 4", l.Amount)
	}
}

// TestSync_UpdatesOrExpiresListingsOfChangedAssets changes the name or phase of a listed
// asset.
func TestSync_UpdatesOrExpiresListingsOfChangedAssets(t *testing.T) {
	const name = "★ Karambit | Doppler (Factory New)"
	w := newFixture(t)
	for i, c := range []struct {
		what              string
		name, phase       string // when listed
		newName, newPhase string // after the sync
		want              market.ListingState
		wantPhase         string
	}{
		{"unchanged", name, "", name, "", market.Active, ""},
		{"phase found", name, "", name, "Ruby", market.Active, "Ruby"},
		{"other phase", name, "Ruby", name, "Phase 1", market.Expired, "Ruby"},
		{"phase lost", name, "Ruby", name, "", market.Expired, "Ruby"},
		{"other name", "x", "", "y", "", market.Expired, ""},
		{"other name and phase", "x", "", name, "Ruby", market.Expired, ""},
		{"name lost", "x", "", "", "", market.Expired, ""},
	} {
		user := "u" + strconv.Itoa(i)
		was, is := asset("1", c.name), asset("1", c.newName)
		was.Phase, is.Phase, is.Marketable = c.phase, c.newPhase, c.newName != ""
		w.push(user, was)
		l := w.mustList(user, "1", 1)
		w.push(user, is)
		got, err := market.ReadListing(t.Context(), w.s, l.ID)
		w.must(err)
		if got.State != c.want || got.Item.Name != c.name || got.Item.Phase != c.wantPhase {
			t.Errorf("%s: got %s and %+v, want %s and phase %q", c.what, got.State, got.Item, c.want, c.wantPhase)
		}
	}
}

func TestSync_EndsTransfersOfReversedTrades(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	trade := w.sell("u", "b", "1", 5)
	other := w.sell("u", "b", "2", 5)
	w.push("u", asset("1", "x"), asset("2", "x"))
	if !w.inTransfer("u", "1") {
		t.Error("pending trade: not in transfer after a sync, want in transfer")
	}
	_, err := w.m.Complete(t.Context(), trade.ID)
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	_, err = w.list("u", "1", 5) // applies the push from before the reversal again
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
	if !w.inTransfer("u", "1") {
		t.Error("reversed trade without a new push: not in transfer, want in transfer")
	}
	w.push("u", asset("1", "x"))
	if w.inTransfer("u", "1") {
		t.Error("reversed trade after a new push: in transfer, want the end of the transfer")
	}
	w.mustList("u", "1", 5)
	_, err = w.m.Complete(t.Context(), other.ID) // its asset has left the inventory
	w.must(err)
}

func TestSync_ExpiresListingsOfUntradableAssets(t *testing.T) {
	w := newFixture(t)
	held, kept := asset("1", "x"), asset("2", "x")
	w.push("u", held, kept)
	one, two := w.mustList("u", "1", 5), w.mustList("u", "2", 5)
	held.Tradable = false
	w.push("u", held, kept)
	if w.state(one.ID) != market.Expired || w.state(two.ID) != market.Active {
		t.Errorf("got the states %s and %s, want expired and active", w.state(one.ID), w.state(two.ID))
	}
	w.fund("b")
	_, err := w.buy(one.ID, "b")
	w.wantFault(err, fault.Conflict, "listing_expired")
	_, err = w.list("u", "1", 5)
	w.wantFault(err, fault.Conflict, "not_tradable")
}

// TestSync_KeepsTransfersOfAssetsThatReappear removes a sold asset from the inventory and
// adds it again.
func TestSync_KeepsTransfersOfAssetsThatReappear(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	pending, completed := w.sell("u", "b", "1", 5), w.sell("u", "b", "2", 5)
	_, err := w.m.Complete(t.Context(), completed.ID)
	w.must(err)
	w.push("u")
	w.push("u", asset("1", "x"), asset("2", "x"))
	_, err = w.list("u", "1", 5)
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
	w.mustList("u", "2", 5) // the trade is completed, and the asset has returned since
	_, err = w.m.Reverse(t.Context(), pending.ID)
	w.must(err)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.mustList("u", "1", 5)
}
