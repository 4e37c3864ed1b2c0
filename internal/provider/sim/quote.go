package sim

// row is one venue's quote of one subject. An amount of 0 means none.
type row struct {
	ask, bid, sale mil
	listings       int64
	sales          int64 // within the venue's window; -1: not counted
	polled         int64 // seconds before the response's time; -1: not stated
}

// quote returns a venue's quote of a subject at a tick; ok is false if the venue does not
// know it.
func (m *model) quote(v *venue, s *subject, tick int64) (r row, ok bool) {
	own := derive(s.hash, saltVenue+uint64(v.index)<<8)
	if s.trait&pinned == 0 && s.trait&absurd == 0 && int64(own>>20%1000) >= v.coverage {
		return row{}, false
	}
	// A venue that resells the listings of another one has its listings.
	lister := &m.venues[v.listings]
	h := derive(s.hash, saltVenue+uint64(lister.index)<<8)
	epoch, start := s.epoch(h, tick)
	price := m.price(lister, s, h, epoch, start)

	r = row{sales: -1, polled: -1, listings: listings(derive(h, saltListings+epoch<<8), price)}
	if r.listings == 0 && s.trait&pinned != 0 {
		r.listings = 1
	}
	if s.trait&unoffered != 0 || s.trait&pinned == 0 && derive(h, saltOffered+epoch<<8)%100 < 3 {
		r.listings = 0
	}
	if r.listings > 0 {
		r.ask = price
	}
	if at, ask := m.joke(s, tick); at == lister.index {
		r.ask, r.listings = ask, 1
	}
	m.trades(&r, v, s, h, epoch, price)
	r.round(v.style.step())
	return r, true
}

// epoch returns the number and the tick of a venue's last change of a subject. Each venue
// changes at its own time.
func (s *subject) epoch(h uint64, tick int64) (number uint64, start int64) {
	offset := int64(derive(h, saltOffset) % uint64(s.period))
	n := (tick + offset) / s.period
	return uint64(n), max(n*s.period-offset, 0)
}

// price returns a venue's true asking price.
func (m *model) price(v *venue, s *subject, h, epoch uint64, start int64) mil {
	stray := s.wild * v.wildness / 1000 * gauss(derive(h, saltStray)) >> 16
	jitter := gauss(derive(h, saltEpoch+epoch<<8)) / 18
	if s.value < 1_000 {
		jitter *= 3
	}
	return max(m.exp.scale(s.value*v.bias/1000, stray+jitter+m.trend(s, start)), 1)
}

// listings draws the number of offers: many for cheap items.
func listings(h uint64, price mil) int64 {
	most := min(max(400_000/(price+100), 4), 2_000)
	u := uniform(h)
	return 1 + u*u/one*most/one
}

// trades sets bids, sales and times, if the venue states them.
func (m *model) trades(r *row, v *venue, s *subject, h, epoch uint64, price mil) {
	if v.bids && s.trait&unoffered == 0 {
		r.bid = price * (700 + int64(derive(h, saltBid+epoch<<8)%250)) / 1000
	}
	if v.days > 0 {
		r.sales = sales(derive(h, saltSales+epoch<<8), s.sold, v.days, price)
		if s.sold != notSold || s.trait&unoffered != 0 {
			r.sale = price * (900 + int64(derive(h, saltSale+epoch<<8)%120)) / 1000
		}
	}
	if v.polled {
		r.polled = int64(derive(h, saltPolled) % (6 * 3600))
		if derive(h, saltFrozen)%500 == 0 {
			r.polled += 30 * 24 * 3600 // a row that was not refreshed for a month
		}
	}
}

// sales draws the number of sales within a window.
func sales(h uint64, sold int64, days int, price mil) int64 {
	if sold == notSold || sold == soldThisMonth && days <= 7 {
		return 0
	}
	if sold != soldLately {
		return 1 + int64(h%3)
	}
	u := uniform(h)
	return 1 + u*u/one*min(max(600_000/(price+100), 3), 3_000)/one*int64(days)/30
}

// round rounds amounts to the venue's precision. None becomes zero.
func (r *row) round(step mil) {
	for _, amount := range []*mil{&r.ask, &r.bid, &r.sale} {
		if *amount > 0 {
			*amount = max((*amount+step/2)/step*step, step)
		}
	}
	if r.ask > 0 && r.bid >= r.ask { // so high a bid would have bought
		r.bid = r.ask - step
	}
}
