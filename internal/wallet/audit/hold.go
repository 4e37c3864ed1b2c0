package audit

import (
	"hash/fnv"

	"assay/internal/money"
	"assay/internal/wallet"
)

// hold puts aside what an account holds by its entries, and, negative, by its open sales.
// Both are brought together by a sorter: neither comes in the order of the other.
func (v *audit) hold(a wallet.Account, amount int64) error {
	if amount == 0 {
		return nil
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.User + "\x00" + string(a.Currency))) // never fails
	return v.byHolder.add(int64(h.Sum64()), func(to []byte) []byte {
		return putInts(putTexts(to, a.User, string(a.Currency)), amount)
	})
}

// holdFor puts aside what is held for a trade: the seller's credit, while it is neither
// settled nor reversed.
func (v *audit) holdFor(t *Trade) error {
	if t.State != tradePending && t.State != tradeCompleted || v.only != "" && t.Seller != v.only {
		return nil
	}
	return v.hold(wallet.Account{User: t.Seller, Currency: t.Currency}, -t.Net)
}

// held examines whether each account holds what its open sales brought, and no more.
func (v *audit) held() error {
	records, err := v.byHolder.sorted()
	if err != nil {
		return err
	}
	var reader recordReader
	sums, last := map[wallet.Account]int64{}, int64(0)
	for {
		key, record, more, err := records.peek()
		if err != nil {
			return err
		}
		if !more || key != last {
			v.heldOf(sums)
			clear(sums)
			last = key
		}
		if !more {
			return nil
		}
		reader.read(record)
		a := wallet.Account{User: reader.word(), Currency: money.Currency(reader.word())}
		sums[a] += reader.int()
		if reader.err != nil {
			return reader.err
		}
		records.take()
	}
}

func (v *audit) heldOf(sums map[wallet.Account]int64) {
	for a, rest := range sums {
		v.that(runningHeld, rest == 0, func() Finding {
			return Finding{
				UserID: a.User, Currency: a.Currency, Expected: "what its open sales brought", Actual: integer(rest) + " more",
				Message: "What the account holds is not the sum of its sales that are neither settled nor reversed.",
			}
		})
	}
}
