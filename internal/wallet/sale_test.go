package wallet_test

import (
	"testing"

	"assay/internal/db"
	"assay/internal/wallet"
)

func TestSell_HoldsTheCreditUntilTheTradeSettles(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 10_000)
	p, err := b.sell(7, 10_000, 1_500)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "0/0", "seller": "8500/8500"})
	if h := p.Head(usd("seller")); h.Available() != 0 || len(p.Entries) != 3 {
		t.Errorf("seller: got %d available after %d entries, want 0 after 3", h.Available(), len(p.Entries))
	}
	_, err = b.do(func(tx *db.Tx) (*wallet.Posted, error) { return b.Withdraw(tx, usd("seller"), 1, wallet.Request{}) })
	wantFault(t, err, "insufficient_funds")
	_, err = b.settle(7)
	b.must(err)
	b.wantBalances(map[string]string{"seller": "8500/0"})
	_, err = b.settle(7)
	wantFault(t, err, "trade_settled")
	_, err = b.reverse(7)
	wantFault(t, err, "trade_settled")
	_, err = b.settle(8)
	wantFault(t, err, "trade_not_paid")
	b.audit()
}

func TestComplete_PostsZeroEntriesForBuyerAndSeller(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 100)
	_, err := b.complete(7)
	wantFault(t, err, "trade_not_paid")
	_, err = b.sell(7, 100, 10)
	b.must(err)
	p, err := b.complete(7)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "0/0", "seller": "90/90"})
	if want := traded(7, 1, 0).Terms(); p.Transaction.Terms != want || p.Transaction.Trade != 7 {
		t.Errorf("covered terms: got %s of trade %d, want %s of trade 7", p.Transaction.Terms, p.Transaction.Trade, want)
	}
	for _, e := range p.Entries {
		if e.Amount != 0 || e.Type != wallet.TypeCompletion || e.Posting != p.Transaction.Hash {
			t.Errorf("got entry %+v, want a completion of amount 0", e)
		}
	}
	_, err = b.complete(7)
	wantFault(t, err, "already_posted")
	_, err = b.settle(7)
	b.must(err)
	_, err = b.complete(7)
	wantFault(t, err, "trade_settled")
	b.audit()
}

func TestReverse_ReversesTheWholeSaleFromHeldMoney(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 10_001)
	_, err := b.sell(7, 10_000, 1_500)
	b.must(err)
	p, err := b.reverse(7)
	b.must(err)
	b.wantBalances(map[string]string{"buyer": "10001/0", "seller": "0/0"})
	for _, e := range p.Entries {
		if e.Reverses == 0 {
			t.Errorf("reversing entry: got %+v, want one with the number of the reversed entry", e)
		}
		if wallet.IsHouse(e.User) && e.Balance != 0 {
			t.Errorf("house balance: got %d, want 0", e.Balance)
		}
	}
	_, err = b.reverse(7)
	wantFault(t, err, "already_reversed")
	_, err = b.settle(7)
	wantFault(t, err, "already_reversed")
	b.audit()
}

func TestSell_AllowsZeroFeeAndFeeEqualToPrice(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 30)
	for trade, fee := range map[int64]int64{1: 0, 2: 10} {
		p, err := b.sell(trade, 10, fee)
		b.must(err)
		if len(p.Entries) != 3 {
			t.Errorf("fee %d: got %d entries, want 3", fee, len(p.Entries))
		}
	}
	b.wantBalances(map[string]string{"buyer": "10/0", "seller": "10/10"})
	if _, err := b.sell(3, 10, 11); err == nil {
		t.Error("sale with a fee above the price: got no error, want one")
	}
	b.audit()
}

func TestSell_RejectsAPaidTrade(t *testing.T) {
	b := newBank(t)
	b.deposit("buyer", 100)
	_, err := b.sell(1, 10, 1)
	b.must(err)
	_, err = b.sell(1, 10, 1)
	wantFault(t, err, "already_posted")
	b.wantBalances(map[string]string{"buyer": "90/0", "seller": "9/9"})
	b.audit()
}
