package pricing

import (
	"cmp"
	"strings"
	"time"

	"assay/internal/money"
)

const (
	// maxPrice is the highest valid price: 10,000,000 units of the base currency.
	maxPrice money.Micro = 10_000_000 * money.Scale
	// maxMarketAge is the maximum age of a quote by the market's own time. The fetch time
	// is not enough, because a provider may serve the same outdated file every day.
	maxMarketAge = 7 * 24 * time.Hour
)

// Quoted returns the amount of a quote that counts: the ask, or the sale if there is no
// ask. It returns 0 and no basis if both are 0.
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

// check applies steps 1 to 3 to one quote.
func (p *Policy) check(now time.Time, q *Quote) QuoteCheck {
	amount, basis := Quoted(q.Ask, q.Sale)
	if amount == 0 {
		return QuoteCheck{Reason: NotOffered}
	}
	v := QuoteCheck{Basis: basis}
	v.Price, v.Reason = p.price(amount, q.Currency)
	if v.Reason == Used {
		v.Reason = p.freshness(now, q)
	}
	return v
}

// price converts an amount to the base currency and checks the result. It checks the
// converted amount, because the units of currencies differ in value by up to 10,000x.
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

// freshness returns StaleFetch, StaleMarket or Used. It checks the fetch time and the
// market's own time. A fetch time in the future means that the clock was set back, so the
// quote counts as fresh. A market time in the future is wrong and is ignored.
func (p *Policy) freshness(now time.Time, q *Quote) Reason {
	if now.Sub(dbPrecision(q.FetchedAt)) > cmp.Or(q.MaxAge, p.MaxAge) {
		return StaleFetch
	}
	if Outdated(now, q.MarketTime) {
		return StaleMarket
	}
	return Used
}

// Outdated reports whether the market's own time of a quote is more than 7 days ago. It
// ignores the zero time and times in the future.
func Outdated(now, marketTime time.Time) bool {
	return !marketTime.IsZero() && now.Sub(dbPrecision(marketTime)) > maxMarketAge
}

// marketTime returns the market's own time of a quote, or the zero time if it is in the
// future.
func marketTime(now time.Time, q *Quote) time.Time {
	if t := dbPrecision(q.MarketTime); !t.After(now) {
		return t
	}
	return time.Time{}
}

// dbPrecision returns t with the precision of the database: microseconds, without a monotonic
// clock reading. A price that is recomputed from stored times is then the same.
func dbPrecision(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// marketGrain and poolGrain are the units in which fetch times are compared. Quotes of one
// market are compared exactly. Quotes of markets with shared listings are compared by the
// hour. A run fetches these markets seconds apart, so an exact comparison could use another
// market in each run.
const (
	marketGrain = time.Microsecond
	poolGrain   = time.Hour
)

// keepOne keeps one usable quote for each key: the one that ranks first. It sets the reason of
// the others. Quotes of late markets rank last. It ignores quotes with an empty key.
func (it *item) keepOne(key func(*Quote) string, grain time.Duration, reason Reason) {
	quotes, all := it.quotes, it.out.Quotes
	for i := range quotes {
		k := key(&quotes[i])
		if k == "" {
			continue
		}
		for j := i + 1; j < len(quotes) && all[i].Reason == Used; j++ {
			a, b := &all[i].QuoteCheck, &all[j].QuoteCheck
			if b.Reason != Used || key(&quotes[j]) != k {
				continue
			}
			loser := a
			if late := it.markets[i].Late; late != it.markets[j].Late {
				if !late {
					loser = b
				}
			} else if rank(it.now, grain, &quotes[i], &quotes[j], a, b) <= 0 {
				loser = b
			}
			loser.Reason = reason
		}
	}
}

func marketKey(q *Quote) string { return q.Market }

func poolKey(q *Quote) string { return q.Pool }

// rank compares two quotes. It returns a negative number if quote a ranks before b. It
// prefers, in this order: the later fetch time in units of grain, the later market time,
// the lower market key and the lower provider key. The other criteria make the result
// independent of the order of quotes, even for duplicates.
func rank(now time.Time, grain time.Duration, a, b *Quote, va, vb *QuoteCheck) int {
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

// Reason is the reason why a quote is not used. It is empty for a used quote.
type Reason string

// The reasons. Outlier and LateMarket exclude a quote only from the consensus. All other
// reasons exclude it from every figure.
const (
	Used           Reason = ""
	NotOffered     Reason = "notOffered"     // no ask and no sale
	InvalidAmount  Reason = "invalidAmount"  // not in the range (0, 10,000,000] units
	NoRate         Reason = "noRate"         // no exchange rate for the currency
	StaleFetch     Reason = "staleFetch"     // fetched too long ago
	StaleMarket    Reason = "staleMarket"    // the market's own time is too long ago
	Duplicate      Reason = "duplicate"      // a fresher quote of the same market is used
	SharedListings Reason = "sharedListings" // another market with the same listings is used
	Outlier        Reason = "outlier"        // outside the group that determines the price
	LateMarket     Reason = "lateMarket"     // the market repeats another or stands still

	// Price never returns the following reasons. The API uses them for stored quotes.
	NotConfigured Reason = "notConfigured" // the market is no longer configured
	Awaiting      Reason = "awaiting"      // fetched after the last estimate; the next one will use it
	Confirmed     Reason = "confirmed"     // fetched after the last estimate, with the same amounts
)

// Basis is the figure of a quote that serves as the price of its market.
type Basis string

// The bases.
const (
	Ask  Basis = "ask"
	Sale Basis = "sale" // median or last sale, used if there is no ask
)

// Quote is the last fetched snapshot of an item on one market. Amounts are micro-units of
// Currency. 0 means no amount.
type Quote struct {
	Provider    string
	Market      string // the same key from two providers is the same market
	Pool        string // markets with the same non-empty pool share their listings
	Currency    money.Currency
	Ask         money.Micro
	Sale        money.Micro
	Sales       int64         // number of sales within SalesWindow; negative: unknown
	SalesWindow time.Duration // period of Sales
	FetchedAt   time.Time     // last successful fetch; a time in the future counts as now
	MarketTime  time.Time     // the market's own time of the quote; zero or in the future: unknown
	MaxAge      time.Duration // maximum time since FetchedAt; 0: Policy.MaxAge

	ID        int64     // ID of the market in the Set
	Moved     Log       // move of the quote in about a day, from Movers
	Apart     bool      // the quotes of the item moved apart, from Movers
	ChangedAt time.Time // last change of a quote requested by name; zero: SetMarket.ChangedAt applies
}

// QuoteCheck is the result of steps 1 to 4 for one quote.
type QuoteCheck struct {
	Price  money.Micro // price in the base currency; 0: none
	Basis  Basis
	Reason Reason
}
