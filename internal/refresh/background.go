package refresh

import (
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// A provider that takes one name per request, within a budget, would hold up any job
// for hours. It is requested in the background instead, for the names that matter most:
// plans place them, one worker for each provider requests them in their order while the
// budget lasts, and the responses are snapshots, which take part in the next estimate.

const (
	// maxPlaced bounds how many names of a provider are placed at once: more than
	// such a budget allows in a day.
	maxPlaced = 10_000
	// backgroundPause is how long no name is requested of a provider that may not or cannot
	// be requested; less, where the provider says when.
	backgroundPause = time.Minute
)

// hasBudget reports whether there is a limit or quota to what a provider is asked
// by name.
func hasBudget(d provider.Description) bool {
	h := d.HostAt(d.HostOf(""))
	return d.Shape != provider.Bulk && (!h.Limit.None() || h.Quota != provider.Quota{})
}

// InBackground reports whether a provider is asked in the background.
func InBackground(d provider.Description) bool { return d.Shape == provider.Single && hasBudget(d) }

// planBackground places what matters most of what a job is about, and notes with the
// job how much it left for later. A bulk job's plan takes over from the one before;
// one that only tries failed items again adds to it.
func (p *planner) planBackground(tx *db.Tx, job *Job, d provider.Description, planned map[int32]int64, batches int) ([]Unit, error) {
	names, err := p.candidates(tx, job, d)
	if err != nil {
		return nil, err
	}
	later := map[int32]int{}
	placed := make([]PlacedName, 0, min(len(names), maxPlaced))
	for i, n := range names {
		later[n.app]++
		if len(placed) < maxPlaced {
			name := PlacedName{AppID: n.app, Name: n.Name, Place: int64(i) + 1}
			if job.Kind == Missing {
				name.Place, name.Missing = 0, n.queuedAt
			}
			placed = append(placed, name)
		}
	}
	if err := placeNames(tx, job.ID, d.Name, placed, job.Kind == Bulk && job.RetryOf == 0); err != nil {
		return nil, err
	}
	var units []Unit
	for _, app := range apps(d) {
		if later[app] > 0 || planned[app] > 0 {
			units = append(units, leftForLater(job, d, app, batches, later[app]))
		}
	}
	return units, nil
}

// leftForLater is the unit that tells how many names of a game a job leaves for
// later.
func leftForLater(job *Job, d provider.Description, app int32, batches, names int) Unit {
	return Unit{
		JobID: job.ID, Provider: d.Name, AppID: app, BatchTo: batches - 1, State: UnitDeferred, Later: names,
		ErrorKind: string(provider.KindBudget), Error: d.Name + ": left for later, since its budget allows no more",
	}
}

// candidates lists what could be requested for a job from a provider with a budget, what
// matters most first. For a provider in the background, names count too that other
// providers keep within their TTL, but not those that were requested from it recently,
// unless the job is forced.
func (p *planner) candidates(tx *db.Tx, job *Job, d provider.Description) ([]wanted, error) {
	background := InBackground(d)
	items, err := candidateNames(tx, job.ID, d.Name, background && job.Kind == Bulk)
	if err != nil {
		return nil, err
	}
	quoted := apps(d)
	items = slices.DeleteFunc(items, func(w CandidateName) bool { return !slices.Contains(quoted, w.AppID) })
	var young time.Duration
	switch {
	case !background || job.Forced:
	case job.Kind == Missing:
		young = nearly(p.cfg.MissingRetry)
	default:
		young = nearly(p.cfg.TTL)
	}
	if job.Kind == Missing {
		return byAge(items, tx.Now(), young), nil
	}
	return byPriority(items, tx.Now(), young), nil
}

// nearly is how much of a time must have passed, so that a schedule equal to it
// works.
func nearly(d time.Duration) time.Duration { return d / 100 * 95 }

// pauseFor returns for how long no name of a provider is requested after a failure.
func pauseFor(failure error) time.Duration {
	if pe, ok := errors.AsType[*provider.Error](failure); ok && pe.RetryAfter > 0 {
		return min(pe.RetryAfter, backgroundPause)
	}
	return backgroundPause
}

// endBackground writes what requesting a name in the background brought. A failure of
// the provider, or the end of this process, leaves the name its place. A failure that is
// the name's own leaves it to the next plan, and all that is known of it as it was.
func (f *fetcher) endBackground(tx *db.Tx, unit *Unit, a *response, again bool) error {
	ended, err := endName(tx, *unit, again, a.fetches())
	switch {
	case err != nil || !ended:
		return err
	case unit.State == UnitDone:
		return f.keepLate(tx, unit, a, NotAwaited)
	case again && (unit.State == UnitPending || unit.ErrorKind == string(provider.KindCancelled)):
		return nil // it says nothing of the provider
	default:
		return f.noteOutcome(tx, unit, nil)
	}
}

// quoteKey is what a quote is of.
type quoteKey struct {
	name, phase string
	market      int64
}

// takeNamed puts the quotes of an answer to names into their items: one of each market
// that was asked, and an empty one where it does not have the item. An answer without any
// quote of a name does not even say that there is such a name, and a silent market or
// one whose row was rejected says nothing: what is stored of it stays.
func (f *fetcher) takeNamed(unit *Unit, a *response, items []NamedItem, now time.Time) error {
	quotes, named := map[quoteKey]Snapshot{}, map[string]bool{}
	rejected := map[quoteKey]bool{} // without a phase
	u := newDecoder()
	defer u.close()
	for _, b := range a.blobs() {
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
				proves := named[item.Name] && !slices.Contains(a.silent, f.known[market].Key) && !rejected[quoteKey{name: item.Name, market: market}]
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

// await puts in a quote for the next estimate. One that is what the last
// estimate had is confirmed by it.
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
