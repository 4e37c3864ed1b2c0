package sim

// row is a market's quote of a subject. An amount of 0 means that there is none.
type row struct {
	ask, bid, sale mil
	listings       int64
	sales          int64 // number of sales in the market's window; -1 if not reported
	age            int64 // seconds between the row's time and the response's; -1 if not reported
}

// quote returns a market's quote of a subject at a tick. The result ok is false if the
// market does not quote the subject.
func (m *model) quote(v *market, s *subject, tick int64) (r row, ok bool) {
	own := derive(s.hash, saltMarket+uint64(v.index)<<8)
	if s.trait&pinned == 0 && s.trait&absurd == 0 && int64(own>>20%1000) >= v.coverage {
		return row{}, false
	}
	// A market that resells another market's listings shows that market's figures.
	lister := &m.markets[v.listings]
	h := derive(s.hash, saltMarket+uint64(lister.index)<<8)
	epoch, start := s.epoch(h, tick)
	price := m.price(lister, s, h, epoch, start)

	r = row{sales: -1, age: -1, listings: listings(derive(h, saltListings+epoch<<8), price)}
	if r.listings == 0 && s.trait&pinned != 0 {
		r.listings = 1
	}
	if s.trait&unoffered != 0 || s.trait&pinned == 0 && derive(h, saltOffered+epoch<<8)%100 < 3 {
		r.listings = 0
	}
	if r.listings > 0 {
		r.ask = price
	}
	if at, ask := m.absurdQuote(s, tick); at == lister.index {
		r.ask, r.listings = ask, 1
	}
	m.trades(&r, v, s, h, epoch, price)
	r.round(v.style.step())
	return r, true
}

// epoch returns the number and the tick of the latest price change of a subject on a
// market. The hash h gives each market a different offset.
func (s *subject) epoch(h uint64, tick int64) (number uint64, start int64) {
	offset := int64(derive(h, saltOffset) % uint64(s.period))
	n := (tick + offset) / s.period
	return uint64(n), max(n*s.period-offset, 0)
}

// price returns a market's asking price before rounding and without absurd quotes.
func (m *model) price(v *market, s *subject, h, epoch uint64, start int64) mil {
	deviation := s.deviation * v.deviation / 1000 * gauss(derive(h, saltMarketDeviation)) >> 16
	jitter := gauss(derive(h, saltEpoch+epoch<<8)) / 18
	if s.value < 1_000 {
		jitter *= 3
	}
	return max(m.exp.scale(s.value*v.bias/1000, deviation+jitter+m.trend(s, start)), 1)
}

// listings draws the number of offers. Cheap items have more.
func listings(h uint64, price mil) int64 {
	most := min(max(400_000/(price+100), 4), 2_000)
	u := uniform(h)
	return 1 + u*u/one*most/one
}

// trades sets the bid, the sales and the age if the market reports them.
func (m *model) trades(r *row, v *market, s *subject, h, epoch uint64, price mil) {
	if v.bids && s.trait&unoffered == 0 {
		r.bid = price * (700 + int64(derive(h, saltBid+epoch<<8)%250)) / 1000
	}
	if v.days > 0 {
		r.sales = sales(derive(h, saltSales+epoch<<8), s.sold, v.days, price)
		if s.sold != notSold || s.trait&unoffered != 0 {
			r.sale = price * (900 + int64(derive(h, saltSale+epoch<<8)%120)) / 1000
		}
	}
	if v.timestamps {
		r.age = int64(derive(h, saltAge) % (6 * 3600))
		if derive(h, saltStale)%500 == 0 {
			r.age += 30 * 24 * 3600 // a row that was not refreshed for a month
		}
	}
}

// sales draws the number of sales in a window of days.
func sales(h uint64, sold int64, days int, price mil) int64 {
	if sold == notSold || sold == soldThisMonth && days <= 7 {
		return 0
	}
	if sold != soldRecently {
		return 1 + int64(h%3)
	}
	u := uniform(h)
	return 1 + u*u/one*min(max(600_000/(price+100), 3), 3_000)/one*int64(days)/30
}

// round rounds amounts to multiples of step. A positive amount stays positive.
func (r *row) round(step mil) {
	for _, amount := range []*mil{&r.ask, &r.bid, &r.sale} {
		if *amount > 0 {
			*amount = max((*amount+step/2)/step*step, step)
		}
	}
	if r.ask > 0 && r.bid >= r.ask { // such a bid would already have been executed
		r.bid = r.ask - step
	}
}
