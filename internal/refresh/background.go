package refresh

import (
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// A provider with a budget and one name per request would delay a job for hours. The
// background fetch requests its names instead. Each plan orders the names by priority. The
// host queue requests them in this order while the budget lasts. The next estimate uses the
// quotes.

const (
	// maxRanked limits how many names of a provider a plan orders. It exceeds the daily
	// budget of such a provider.
	maxRanked = 10_000
	// backgroundPause is how long requests for names pause after a failure of the provider. A
	// shorter retry-after shortens it.
	backgroundPause = time.Minute
)

// hasBudget reports whether a provider that is queried by name has a limit or a quota.
func hasBudget(d provider.Description) bool {
	h := d.HostAt(d.HostOf(""))
	return d.Shape != provider.Bulk && (!h.Limit.None() || h.Quota != provider.Quota{})
}

// InBackground reports whether the background fetch requests the names of a provider.
func InBackground(d provider.Description) bool { return d.Shape == provider.Single && hasBudget(d) }

// planBackground orders the names of a job by priority, and creates units that count them as
// deferred. A bulk job replaces the stored order. All other jobs, and jobs that retry failed
// items, add to it.
func (p *planner) planBackground(tx *db.Tx, job *Job, d provider.Description, planned map[int32]int64, batches int) ([]FetchUnit, error) {
	names, err := p.candidates(tx, job, d)
	if err != nil {
		return nil, err
	}
	later := map[int32]int{}
	ranked := make([]BackgroundName, 0, min(len(names), maxRanked))
	for i, n := range names {
		later[n.app]++
		if len(ranked) < maxRanked {
			name := BackgroundName{AppID: n.app, Name: n.Name, Rank: int64(i) + 1}
			if job.Kind == Missing {
				name.Rank, name.Missing = 0, n.queuedAt
			}
			ranked = append(ranked, name)
		}
	}
	if err := storeRanking(tx, job.ID, d.Name, ranked, job.Kind == Bulk && job.RetryOf == 0); err != nil {
		return nil, err
	}
	var units []FetchUnit
	for _, app := range apps(d) {
		if later[app] > 0 || planned[app] > 0 {
			units = append(units, deferredNames(job, d, app, batches, later[app]))
		}
	}
	return units, nil
}

// deferredNames returns a unit that counts the deferred names of a game in a job.
func deferredNames(job *Job, d provider.Description, app int32, batches, names int) FetchUnit {
	return FetchUnit{
		JobID: job.ID, Provider: d.Name, AppID: app, BatchTo: batches - 1, State: UnitDeferred, DeferredNames: names,
		ErrorKind: string(provider.KindBudget), Error: d.Name + ": deferred because its budget is spent",
	}
}

// candidates returns the names that can be requested from a provider with a budget, by
// priority. For a bulk job and a background provider they include names of items within their
// TTL, because the quotes may come from other providers. Unless the job is forced or has chosen
// items, candidates omits names that this provider was queried for within the TTL, or within
// the first retry pause in a missing-price job.
func (p *planner) candidates(tx *db.Tx, job *Job, d provider.Description) ([]candidate, error) {
	background := InBackground(d)
	items, err := candidateNames(tx, job.ID, d.Name, background && job.Kind == Bulk)
	if err != nil {
		return nil, err
	}
	quoted := apps(d)
	items = slices.DeleteFunc(items, func(w CandidateName) bool { return !slices.Contains(quoted, w.AppID) })
	var minAge time.Duration
	switch {
	case !background || job.Forced || job.Kind == Chosen:
	case job.Kind == Missing:
		minAge = withTolerance(p.cfg.MissingRetry)
	default:
		minAge = withTolerance(p.cfg.TTL)
	}
	if job.Kind == Missing {
		return byAge(items, tx.Now(), minAge), nil
	}
	return byPriority(items, tx.Now(), minAge), nil
}

// withTolerance returns 95 % of d; see tolerancePercent.
func withTolerance(d time.Duration) time.Duration { return d / 100 * 95 }

// pauseFor returns how long requests for names pause after a failure.
func pauseFor(failure error) time.Duration {
	if pe, ok := errors.AsType[*provider.Error](failure); ok && pe.RetryAfter > 0 {
		return min(pe.RetryAfter, backgroundPause)
	}
	return backgroundPause
}

// endBackground stores the result of a request for a name in the background. keepRank is set
// if the provider failed or this process stops. The name then keeps its rank. If only the name
// failed, the next plan decides whether to request it again, and the stored quotes remain.
func (f *fetcher) endBackground(tx *db.Tx, unit *FetchUnit, r *quoteSink, keepRank bool) error {
	ended, err := endName(tx, *unit, keepRank, r.fetches())
	switch {
	case err != nil || !ended:
		return err
	case unit.State == UnitDone:
		return f.storeDetached(tx, unit, r, DetachedBackground)
	case keepRank && (unit.State == UnitPending || unit.ErrorKind == string(provider.KindCancelled)):
		return nil // not a failure of the provider
	default:
		return f.noteOutcome(tx, unit, nil)
	}
}

// quoteKey identifies a quote in a response to names.
type quoteKey struct {
	name, phase string
	market      int64
}

// mergeQuotes merges the quotes of a response to names into the items. A requested market
// without a quote of the item gets an empty quote, which means that the market does not list
// the item. The stored quote remains if the market may still list the item: the response has
// no quote of the name at all, it lacks the market, or the market's row was rejected.
func (f *fetcher) mergeQuotes(unit *FetchUnit, r *quoteSink, items []NamedItem, now time.Time) error {
	quotes, named := map[quoteKey]MarketSnapshot{}, map[string]bool{}
	rejected := map[quoteKey]bool{} // keys without a phase
	u := newDecoder()
	defer u.close()
	for _, b := range r.encode() {
		err := f.decodeRows(u, b, func(q *quoteRecord) {
			if q.Rejected {
				rejected[quoteKey{name: string(q.Name), market: q.Market}] = true
				return
			}
			quotes[quoteKey{string(q.Name), q.Phase, q.Market}] = q.snapshot()
			named[string(q.Name)] = true
		})
		if err != nil {
			return err
		}
	}
	markets := f.requestedMarkets(&FetchUnit{Provider: unit.Provider, AppID: unit.AppID})
	for i := range items {
		item := &items[i]
		for _, market := range markets {
			s, ok := quotes[quoteKey{item.Name, item.Phase, market}]
			if !ok {
				proves := named[item.Name] && !slices.Contains(r.silent, f.marketsByID[market].Key) && !rejected[quoteKey{name: item.Name, market: market}]
				if !proves && quoteOf(item.Quotes, market) != nil {
					continue
				}
				s = MarketSnapshot{MarketID: market, Currency: f.cfg.Policy.Currency, Listings: provider.Unknown, Sales: provider.Unknown}
			}
			s.FetchedAt = now
			item.await(s)
		}
	}
	return nil
}

// await stores a quote for the next estimate. Its reason is Confirmed if the last estimate
// used an equal quote.
func (i *NamedItem) await(s MarketSnapshot) {
	s.Reason = pricing.Awaiting
	at, found := findQuote(i.Quotes, s.MarketID)
	if !found {
		i.Quotes = slices.Insert(i.Quotes, at, s)
		return
	}
	old := &i.Quotes[at]
	if old.Reason != pricing.Awaiting && old.Ask == s.Ask && old.Sale == s.Sale && old.Currency == s.Currency {
		s.Reason = pricing.Confirmed
	}
	*old = s
}
