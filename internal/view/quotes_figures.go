package view

import (
	"time"

	"assay/internal/money"
)

// sum sets the figures across the counted quotes.
func (v *QuotedItem) sum(q *quoter) {
	var active int64 // listings of the markets that also report sales
	var activePerDay money.Micro
	for i := range v.Quotes {
		m := &v.Quotes[i]
		if !m.Counted {
			continue
		}
		if m.Ask != nil && (v.BestAsk == nil || *m.Ask < v.BestAsk.Price) {
			v.BestAsk = q.offer(m, *m.Ask, 1)
		}
		if m.Bid != nil && (v.BestBid == nil || *m.Bid > v.BestBid.Price) {
			v.BestBid = q.offer(m, *m.Bid, -1)
		}
		v.Listings, v.Sales = addCount(v.Listings, m.Listings), addCount(v.Sales, m.Sales)
		perDay, ok := m.salesPerDay()
		if !ok {
			continue
		}
		if v.SalesPerDay == nil {
			v.SalesPerDay = new(money.Micro)
		}
		*v.SalesPerDay += perDay
		if m.Listings != nil {
			active, activePerDay = active+*m.Listings, activePerDay+perDay
		}
	}
	if v.BestAsk != nil && v.BestBid != nil {
		v.Spread = new(v.BestAsk.Price - v.BestBid.Price)
		v.SpreadAfterFees = new(v.BestAsk.AfterFee - v.BestBid.AfterFee)
	}
	if active > 0 {
		v.Liquidity = new(money.Div(activePerDay, active))
	}
}

// offer returns an ask or a bid with its market's fee. The fee is added to an ask (sign 1) and
// taken from a bid (sign -1).
func (q *quoter) offer(m *MarketQuote, price, sign money.Micro) *Offer {
	fee, own := q.fees[m.Provider+"/"+m.Market]
	if !own {
		fee = q.fees[m.Market]
	}
	const basisPoint money.Rate = money.RateScale / 10_000
	charged, _ := money.Convert(price, money.Rate(fee)*basisPoint) // no overflow: a fee is at most the amount
	return &Offer{Provider: m.Provider, Market: m.Market, Price: price, FeeBasisPoints: fee, AfterFee: price + sign*charged}
}

// maxSales is the highest accepted number of sales. It prevents an overflow.
const maxSales = 1_000_000_000

// salesPerDay returns the mean number of sales per day in the sales window, in millionths.
func (m *MarketQuote) salesPerDay() (money.Micro, bool) {
	if m.Sales == nil || *m.SalesWindowSeconds <= 0 || *m.Sales > maxSales {
		return 0, false
	}
	const day = int64(24 * time.Hour / time.Second)
	return money.Ratio(money.Micro(*m.Sales*day), money.Micro(*m.SalesWindowSeconds))
}

func addCount(sum, n *int64) *int64 {
	switch {
	case n == nil:
		return sum
	case sum == nil:
		return new(*n)
	}
	return new(*sum + *n)
}
