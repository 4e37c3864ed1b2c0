package pricing

import (
	"cmp"
	"strings"
	"time"

	"assay/internal/money"
)

const (
	// maxPrice is the highest price believed, in the base currency: 10,000,000
	// units.
	maxPrice money.Micro = 10_000_000 * money.Scale
	// maxMarketAge is how old a quote may be by the market's own time: a file
	// frozen for months is fetched freshly every day.
	maxMarketAge = 7 * 24 * time.Hour
)

// Quoted returns what counts of a quote, as quoted: its ask, else its sale. 0:
// nothing is offered, and there is no basis.
func Quoted(ask, sale money.Micro) (money.Micro, Basis) {
	switch {
	case ask != 0:
		return ask, Ask
	case sale != 0:
		return sale, Sale
	default:
		return 0, ""
	}
}

// verdict applies steps 1-3 to one quote.
func (p *Policy) verdict(now time.Time, q *Quote) Verdict {
	amount, basis := Quoted(q.Ask, q.Sale)
	if amount == 0 {
		return Verdict{Reason: NotOffered}
	}
	v := Verdict{Basis: basis}
	v.Price, v.Reason = p.price(amount, q.Currency)
	if v.Reason == Used {
		v.Reason = p.freshness(now, q)
	}
	return v
}

// price converts a quoted amount to the base currency and checks it there: ten
// million units are a fortune in one currency and a sticker in another.
func (p *Policy) price(amount money.Micro, currency money.Currency) (money.Micro, Reason) {
	if amount < 0 {
		return 0, InvalidAmount
	}
	if currency != p.Currency {
		rate, ok := p.Rates.Of(currency)
		if !ok {
			return 0, NoRate
		}
		if amount, ok = money.Convert(amount, rate.Value); !ok {
			return 0, InvalidAmount
		}
	}
	if amount <= 0 || amount > maxPrice {
		return 0, InvalidAmount
	}
	return amount, Used
}

// freshness tells whether a quote is too old to count, by our own time of
// fetching it and by the market's where it states one.
//
// A fetch in the future can only mean that our clock was set back since; such a
// quote is taken as just fetched. A market time in the future is a wrong one
// and must not help: it counts as not stated.
func (p *Policy) freshness(now time.Time, q *Quote) Reason {
	if now.Sub(stored(q.FetchedAt)) > cmp.Or(q.MaxAge, p.MaxAge) {
		return StaleFetch
	}
	if Outdated(now, q.MarketTime) {
		return StaleMarket
	}
	return Used
}

// Outdated reports whether a market's own time of a quote is too long ago. A time
// in the future, and the zero time, count as not stated.
func Outdated(now, marketTime time.Time) bool {
	return !marketTime.IsZero() && now.Sub(stored(marketTime)) > maxMarketAge
}

// marketTime returns the market's time where it is to be believed, else zero.
func marketTime(now time.Time, q *Quote) time.Time {
	if t := stored(q.MarketTime); !t.After(now) {
		return t
	}
	return time.Time{}
}

// stored returns t as the store would give it back: to the microsecond and
// without a reading of the monotonic clock, which would decide otherwise.
func stored(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// How exactly times of fetching are compared. Of the same market twice the
// fresher counts. Which of several markets with the same listings counts is all
// one, so seconds between two fetches of one run do not decide: it would be
// another one in each run.
const (
	fresher = time.Microsecond
	asFresh = time.Hour
)

// leaveOne lets, of all usable quotes with the same key, the first in rank count
// and gives the others reason. One of a late market gives way to one that is not late. An
// empty key is shared with no other quote.
func (p *Pricer) leaveOne(now time.Time, quotes []Quote, all []QuoteResult, s *pricerScratch, key func(*Quote) string, grain time.Duration, reason Reason) {
	for i := range quotes {
		k := key(&quotes[i])
		if k == "" {
			continue
		}
		for j := i + 1; j < len(quotes) && all[i].Reason == Used; j++ {
			a, b := &all[i].Verdict, &all[j].Verdict
			if b.Reason != Used || key(&quotes[j]) != k {
				continue
			}
			if cmp.Or(p.late(s, i)-p.late(s, j), rank(now, grain, &quotes[i], &quotes[j], a, b)) <= 0 {
				b.Reason = reason
			} else {
				a.Reason = reason
			}
		}
	}
}

func marketKey(q *Quote) string { return q.Market }

func poolKey(q *Quote) string { return q.Pool }

// rank is negative where quote a counts before b: fetched later, in units of
// grain; by the market's
// own word later, a stated time before none; lower market key; lower provider
// key. What follows separates quotes that no caller should give, so that even
// then the order of quotes does not matter.
func rank(now time.Time, grain time.Duration, a, b *Quote, va, vb *Verdict) int {
	return cmp.Or(
		b.FetchedAt.Truncate(grain).Compare(a.FetchedAt.Truncate(grain)),
		marketTime(now, b).Compare(marketTime(now, a)),
		strings.Compare(a.Market, b.Market),
		strings.Compare(a.Provider, b.Provider),
		cmp.Compare(va.Price, vb.Price),
		strings.Compare(string(va.Basis), string(vb.Basis)),
		strings.Compare(a.Pool, b.Pool),
	)
}
