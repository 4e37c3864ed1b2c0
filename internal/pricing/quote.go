package pricing

import (
	"cmp"
	"strings"
	"time"

	"assay/internal/money"
)

const (
	// maxPrice is the highest valid price, in the base currency: 10,000,000 units.
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

// price converts a quoted amount to the base currency and checks it there, since one
// limit would not do for currencies whose units differ by a factor of 10,000.
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

// freshness reports whether a quote is too old to count, by the time of its fetch and by
// the market's own time if it states one. A fetch in the future means that the clock was
// set back since: it counts as just now. A market time in the future is wrong, and counts
// as not stated.
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

// marketTime returns the market's own time of a quote; zero if it is in the future.
func marketTime(now time.Time, q *Quote) time.Time {
	if t := stored(q.MarketTime); !t.After(now) {
		return t
	}
	return time.Time{}
}

// stored returns t as it is read back from the database: to the microsecond and without a
// reading of the monotonic clock, so that a recomputed price is the same.
func stored(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// The units in which fetch times are compared. Of one market the fresher quote counts. Of
// several markets with the same listings the seconds between fetches of one run must not
// decide, or another market would count in each run.
const (
	fresher = time.Microsecond
	asFresh = time.Hour
)

// leaveOne keeps the first in rank of the usable quotes with the same key, and gives the
// others the reason. A late market ranks after one that is not late. An empty key equals
// no other.
func (it *item) leaveOne(key func(*Quote) string, grain time.Duration, reason Reason) {
	quotes, all := it.quotes, it.out.Quotes
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

// Reason is why a quote takes no part in a figure; empty: it takes part.
type Reason string

// The reasons. All but Outlier and LateMarket keep a quote out of every figure;
// these two only out of the consensus.
const (
	Used           Reason = ""
	NotOffered     Reason = "notOffered"     // neither ask nor sale
	InvalidAmount  Reason = "invalidAmount"  // not within (0, 10,000,000] units
	NoRate         Reason = "noRate"         // no exchange rate for its currency
	StaleFetch     Reason = "staleFetch"     // fetched too long ago
	StaleMarket    Reason = "staleMarket"    // the market's own time is too long ago
	Duplicate      Reason = "duplicate"      // a fresher quote of the same market counts
	SharedListings Reason = "sharedListings" // another market with the same listings counts
	Outlier        Reason = "outlier"        // outside the group that decides
	LateMarket     Reason = "lateMarket"     // its market repeats another or stands still; the average counts it
	NotConfigured  Reason = "notConfigured"  // the market is no longer configured; not of an estimate
	Awaiting       Reason = "awaiting"       // fetched since the last estimate; takes part in the next; not of an estimate
	Confirmed      Reason = "confirmed"      // the same, with the amounts that it had before
)

// Basis is the figure of a market that serves as its price.
type Basis string

// The bases.
const (
	Ask  Basis = "ask"
	Sale Basis = "sale" // nothing is offered; the median or last sale serves
)

// Quote is one market's snapshot, as last fetched. Amounts are micro-units of
// Currency, 0 is none.
type Quote struct {
	Provider    string
	Market      string // the same key from two providers is the same market
	Pool        string // markets with the same non-empty pool share their listings
	Currency    money.Currency
	Ask         money.Micro
	Sale        money.Micro
	Sales       int64         // within SalesWindow; negative: unknown
	SalesWindow time.Duration // what Sales covers
	FetchedAt   time.Time     // time of the last successful fetch; in the future (the clock was set back): just now
	MarketTime  time.Time     // the market's own time of the quote; zero or in the future: not stated
	MaxAge      time.Duration // longest time since FetchedAt; 0: Policy.MaxAge

	// The market as the Set knows it, its quote's own move since about a day ago
	// (Movers), and, of quotes that were requested by name, when their amounts last
	// changed (zero: when the market's response did).
	ID        int64
	Moved     Log
	Apart     bool // half of the item's quotes left the others (Movers)
	ChangedAt time.Time
}

// Verdict is what became of one quote.
type Verdict struct {
	Price  money.Micro // in the base currency; 0 where it has none
	Basis  Basis
	Reason Reason
}
