package market_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/market"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
)

func TestPurchase_IsAtomic(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	l := w.mustList("u", "1", 700)
	_, err := w.buy(l.ID, "u")
	w.wantFault(err, fault.Conflict, "own_listing")
	_, err = w.buy(999, "b")
	w.wantFault(err, fault.NotFound, "listing_not_found")
	_, err = w.buy(l.ID, "house:fee:00")
	w.wantFault(err, fault.Unprocessable, "reserved_user")

	_, err = w.buy(l.ID, "b")
	w.wantFault(err, fault.Conflict, "insufficient_funds")
	if w.state(l.ID) != market.Active || w.inTransfer("u", "1") {
		t.Error("refused purchase: the listing or the asset changed, want no change")
	}
	if _, known, _ := user.Key(t.Context(), w.s, "b"); known {
		t.Error("refused purchase: the buyer exists, want no new user")
	}
	w.fund("b")
	trade, err := w.buy(l.ID, "b")
	w.must(err)
	stored, err := market.ReadTrade(t.Context(), w.s, trade.ID)
	w.must(err)
	if *stored != trade || trade.Seller != "u" || trade.Buyer != "b" || trade.Price != 700 || trade.State != market.Pending {
		t.Errorf("got the trade %+v and the stored trade %+v, want the same pending trade of u and b", trade, stored)
	}
	if trade.Fee != 35 || trade.Net != 665 || trade.FeeRule != "sale" || trade.FeeVersion != 1 || trade.TransactionID == 0 {
		t.Errorf("got the trade %+v, want the fee 35, net 665 and rule sale", trade)
	}
	w.wantBalances(map[string]string{"b": "999300/0", "u": "665/665", "house:fee": "35/0"})
	if w.state(l.ID) != market.Sold || !w.inTransfer("u", "1") {
		t.Error("after the purchase: want a sold listing and an asset in transfer")
	}
	_, err = w.buy(l.ID, "c")
	w.wantFault(err, fault.Conflict, "listing_sold")
	_, err = w.list("u", "1", 1)
	w.wantFault(err, fault.Conflict, "asset_in_transfer")
}

func TestPurchase_AppliesTheFeeRuleOfThePayment(t *testing.T) {
	w := newFixture(t)
	set, err := fee.Decode(strings.NewReader(`{"rules":[
		{"id":"card","priority":1,"conditions":{"kind":["sale"],"paymentMethod":["card"],"country":["DE"],"currency":["USD"]},"basisPoints":1000,"fixed":7}],
		"fallback":{"basisPoints":100}}`))
	w.must(err)
	feetest.Activate(t, w.s, w.ledger.Keys, set)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.fund("b")
	for i, c := range []struct {
		method, country, rule string
		fee                   int64
	}{{"card", "DE", "card", 107}, {"card", "AT", fee.FallbackID, 10}, {"", "", fee.FallbackID, 10}} {
		l := w.mustList("u", strconv.Itoa(i+1), 1000)
		var made market.Trade
		w.must(w.m.Purchase(t.Context(), market.Purchase{ListingID: l.ID, Buyer: "b", PaymentMethod: c.method, Country: c.country},
			func(_ *db.Tx, t market.Trade) error {
				made = t
				return nil
			}))
		if made.FeeRule != c.rule || made.FeeVersion != 2 || made.Fee != c.fee || made.Net != 1000-c.fee || made.Country != c.country {
			t.Errorf("payment %q from %q: got %+v, want the rule %s and the fee %d", c.method, c.country, made, c.rule, c.fee)
		}
	}
	w.wantBalances(map[string]string{"b": "997000/0", "u": "2873/2873", "house:fee": "127/0"})
	w.push("v", asset("1", "x"))
	err = w.m.Purchase(t.Context(), market.Purchase{ListingID: w.mustList("v", "1", 1000).ID, Buyer: "b", Country: "Germany"}, nil)
	w.wantFault(err, fault.Unprocessable, "invalid_payment")
}

func (w *fixture) inTransfer(userID, assetID string) bool {
	w.Helper()
	key, _, err := user.Key(w.Context(), w.s, userID)
	w.must(err)
	rows, err := view.ReadInventory(w.Context(), w.s, key, 0, 0, 100)
	w.must(err)
	for _, r := range rows {
		if r.AssetID == assetID {
			return r.InTransfer
		}
	}
	return false
}

func TestReverse_EndsTheTransferOfAPendingTrade(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"))
	w.fund("b")
	trade := w.sell("u", "b", "1", 5)
	w.sell("u", "b", "2", 5)
	for range 2 {
		_, err := w.m.Reverse(t.Context(), trade.ID)
		w.must(err)
	}
	if w.inTransfer("u", "1") || !w.inTransfer("u", "2") {
		t.Error("after the reversal: want asset 1 not in transfer and asset 2 in transfer")
	}
	again := w.mustList("u", "1", 5)
	_, err := w.buy(again.ID, "b")
	w.must(err)
	_, err = w.m.Reverse(t.Context(), trade.ID)
	w.must(err)
	if !w.inTransfer("u", "1") {
		t.Error("after a repeated reversal: the asset of the newer trade is not in transfer, want in transfer")
	}
}

func TestTrades_AllowOnlyForwardTransitions(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"), asset("2", "x"), asset("3", "x"))
	w.fund("b", "c")
	kept, taken, early := w.sell("u", "b", "1", 100), w.sell("u", "b", "2", 100), w.sell("u", "c", "3", 100)
	begin := w.clock()
	for range 2 {
		got, err := w.m.Complete(t.Context(), kept.ID)
		w.must(err)
		if got.State != market.Completed || !got.CompletedAt.Equal(begin) || !got.ReversibleUntil().Equal(begin.Add(7*24*time.Hour)) {
			t.Errorf("Complete: got %+v, want the trade completed at %v", got, begin)
		}
		w.advance(time.Second)
	}
	_, err := w.m.Complete(t.Context(), taken.ID)
	w.must(err)
	for _, id := range []int64{taken.ID, taken.ID, early.ID} {
		got, err := w.m.Reverse(t.Context(), id)
		w.must(err)
		if got.State != market.Reversed || got.ReversedAt.IsZero() {
			t.Errorf("Reverse: got %+v, want a reversed trade", got)
		}
	}
	w.wantBalances(map[string]string{"b": "999900/0", "c": "1000000/0", "u": "95/95", "house:fee": "5/0"})
	_, err = w.m.Complete(t.Context(), taken.ID)
	w.wantFault(err, fault.Conflict, "trade_reversed")
	_, err = w.m.Complete(t.Context(), 999)
	w.wantFault(err, fault.NotFound, "trade_not_found")

	settled := func() *market.Trade {
		t.Helper()
		w.must(w.m.SettleDue(t.Context()))
		got, err := market.ReadTrade(t.Context(), w.s, kept.ID)
		w.must(err)
		return got
	}
	w.now.Store(begin.Add(168*time.Hour - time.Microsecond).UnixMicro())
	if got := settled(); got.State != market.Completed {
		t.Errorf("before the end of the hold: got %+v, want completed", got)
	}
	w.advance(time.Microsecond)
	if got := settled(); got.State != market.Settled || !got.SettledAt.Equal(w.clock()) {
		t.Errorf("at the end of the hold: got %+v, want settled now", got)
	}
	w.advance(time.Hour)
	if got := settled(); !got.SettledAt.Before(w.clock()) {
		t.Errorf("an hour later: got %+v, want the earlier settlement", got)
	}
	if got, err := w.m.Complete(t.Context(), kept.ID); err != nil || got.State != market.Settled {
		t.Errorf("Complete of a settled trade: got %v, %v, want settled, nil", got.State, err)
	}
	_, err = w.m.Reverse(t.Context(), kept.ID)
	w.wantFault(err, fault.Conflict, "trade_settled")
	w.wantBalances(map[string]string{"b": "999900/0", "u": "95/0", "house:fee": "5/0"})
}

func TestSettleDue_ContinuesAfterAFailure(t *testing.T) {
	w := newFixture(t)
	w.push("u", asset("1", "x"))
	w.push("v", asset("1", "x"))
	w.fund("b")
	first, second := w.sell("u", "b", "1", 100), w.sell("v", "b", "1", 100)
	for _, id := range []int64{first.ID, second.ID} {
		_, err := w.m.Complete(t.Context(), id)
		w.must(err)
	}
	w.advance(168 * time.Hour)
	w.raw(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u'`)
	if err := w.m.SettleDue(t.Context()); !errors.Is(err, wallet.ErrTampered) {
		t.Errorf("SettleDue: got %v, want %v", err, wallet.ErrTampered)
	}
	got, err := market.ReadTrade(t.Context(), w.s, second.ID)
	w.must(err)
	if got.State != market.Settled {
		t.Errorf("second trade: got %+v, want settled", got)
	}
	w.raw(`UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'u'`)
	w.must(w.m.SettleDue(t.Context()))
	if got, err = market.ReadTrade(t.Context(), w.s, first.ID); err != nil || got.State != market.Settled {
		t.Errorf("first trade after the repair: got %+v, %v, want settled", got, err)
	}
	w.wantBalances(map[string]string{"u": "95/0", "v": "95/0"})
}
