package refresh

import (
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// A provider that takes one name per request, within a budget, would delay any job for hours.
// It is requested in the background instead: plans order the names by priority, the
// provider's host queue requests them in this order while the budget lasts, and the quotes
// take part in the next estimate.

const (
	// maxRanked bounds how many names of a provider a plan orders: more than such a budget
	// allows in a day.
	maxRanked = 10_000
	// backgroundPause is how long no name of a provider is requested after a failure of the
	// provider, unless the provider states a shorter wait.
	backgroundPause = time.Minute
)

// hasBudget reports whether a provider that is queried by name has a limit or a quota.
func hasBudget(d provider.Description) bool {
	h := d.HostAt(d.HostOf(""))
	return d.Shape != provider.Bulk && (!h.Limit.None() || h.Quota != provider.Quota{})
}

// InBackground reports whether a provider is requested in the background.
func InBackground(d provider.Description) bool { return d.Shape == provider.Single && hasBudget(d) }

// planBackground orders the names of a job by priority, and stores with the job how many it
// left for later. The plan of a bulk job replaces the one before. The plan of a job that
// retries failed items adds to it.
func (p *planner) planBackground(tx *db.Tx, job *Job, d provider.Description, planned map[int32]int64, batches int) ([]Unit, error) {
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
	var units []Unit
	for _, app := range apps(d) {
		if later[app] > 0 || planned[app] > 0 {
			units = append(units, deferredNames(job, d, app, batches, later[app]))
		}
	}
	return units, nil
}

// deferredNames returns the unit that counts the names of a game that a job leaves for later.
func deferredNames(job *Job, d provider.Description, app int32, batches, names int) Unit {
	return Unit{
		JobID: job.ID, Provider: d.Name, AppID: app, BatchTo: batches - 1, State: UnitDeferred, Later: names,
		ErrorKind: string(provider.KindBudget), Error: d.Name + ": left for later, since its budget allows no more",
	}
}

// candidates lists the names that a provider with a budget could be queried for, by priority.
// For a provider in the background they include names within the TTL by other providers, but
// not names that this provider was queried for within the TTL, unless the job is forced.
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
	case !background || job.Forced:
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

// withTolerance is the part of a time that must have passed, so that a schedule of the same period
// works.
func withTolerance(d time.Duration) time.Duration { return d / 100 * 95 }

// pauseFor returns for how long no name of a provider is requested after a failure.
func pauseFor(failure error) time.Duration {
	if pe, ok := errors.AsType[*provider.Error](failure); ok && pe.RetryAfter > 0 {
		return min(pe.RetryAfter, backgroundPause)
	}
	return backgroundPause
}

// endBackground stores the result of a request for a name in the background. After a failure
// of the provider, or if this process stops, the name keeps its place. After a failure of the
// name alone, the next plan decides, and the stored quotes stay.
func (f *fetcher) endBackground(tx *db.Tx, unit *Unit, r *response, keepPlace bool) error {
	ended, err := endName(tx, *unit, keepPlace, r.fetches())
	switch {
	case err != nil || !ended:
		return err
	case unit.State == UnitDone:
		return f.storeDetached(tx, unit, r, DetachedBackground)
	case keepPlace && (unit.State == UnitPending || unit.ErrorKind == string(provider.KindCancelled)):
		return nil // it says nothing about the provider
	default:
		return f.noteOutcome(tx, unit, nil)
	}
}

// quoteKey identifies a quote of a response to names.
type quoteKey struct {
	name, phase string
	market      int64
}

// mergeQuotes puts the quotes of a response to names into the items: one of each requested
// market, or an empty one if the market does not list the item. A response without any quote
// of a name does not even show that the name exists. A silent market, or one whose row was
// rejected, shows nothing either. In both cases the stored quotes stay.
func (f *fetcher) mergeQuotes(unit *Unit, r *response, items []NamedItem, now time.Time) error {
	quotes, named := map[quoteKey]Snapshot{}, map[string]bool{}
	rejected := map[quoteKey]bool{} // their keys have no phase
	u := newDecoder()
	defer u.close()
	for _, b := range r.blobs() {
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
	markets := f.requestedMarkets(&Unit{Provider: unit.Provider, AppID: unit.AppID})
	for i := range items {
		item := &items[i]
		for _, market := range markets {
			s, ok := quotes[quoteKey{item.Name, item.Phase, market}]
			if !ok {
				proves := named[item.Name] && !slices.Contains(r.silent, f.known[market].Key) && !rejected[quoteKey{name: item.Name, market: market}]
				if !proves && quoteOf(item.Quotes, market) != nil {
					continue
				}
				s = Snapshot{MarketID: market, Currency: f.cfg.Policy.Currency, Listings: provider.Unknown, Sales: provider.Unknown}
			}
			s.FetchedAt = now
			item.await(s)
		}
	}
	return nil
}

// await stores a quote for the next estimate. A quote that equals the one of the last
// estimate confirms it.
func (i *NamedItem) await(s Snapshot) {
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
