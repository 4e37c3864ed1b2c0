package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/pricing"
)

// marketInFile is one market in the response of a file in a job.
type marketInFile struct {
	ValidationResult
	base  MarketFile // newest good response, if any
	isNew bool       // the response has not been validated yet
}

// manyQuotes is the number of quotes above which validation saves memory. It compares all
// markets, so it holds the quotes of all responses.
const manyQuotes = 1_000_000

// tryValidate validates the responses of a job, unless another slot or process validates already.
func (f *fetcher) tryValidate(ctx context.Context, job *Job) (claimed bool, err error) {
	if !f.validating.TryLock() {
		return false, nil
	}
	defer f.validating.Unlock()
	err = f.store.InTx(ctx, func(tx *db.Tx) (err error) {
		claimed, err = claimValidation(tx, job.ID, f.owner)
		return err
	})
	if err != nil || !claimed {
		return false, err
	}
	defer f.wake(WorkEstimate) // the batches of this job can be estimated now
	return true, f.validate(ctx, job)
}

// validate checks the new responses of a job's files, learns the levels of each game's
// markets from the good ones, and moves the job on to the estimate stage
// (docs/contribute/pricing.md, steps 5 to 7). Rejecting a response requires reading all of
// it, so validation runs between fetch and estimate. The process has claimed it. Should another
// one have taken over, the first one to write decides. If another job has changed a file in the
// meantime, or an operator has accepted one, validate stores nothing, and the next call validates
// again.
func (f *fetcher) validate(ctx context.Context, job *Job) (err error) {
	first, due := false, false
	defer func() {
		if !first { // also after a panic
			err = errors.Join(err, f.writeAfterCancel(ctx, func(tx *db.Tx) error { return releaseValidation(tx, job.ID, f.owner) }))
		}
	}()
	all, err := jobUnits(ctx, f.store, job.ID)
	if err != nil {
		return err
	}
	units := slices.DeleteFunc(slices.Clone(all), func(u FetchUnit) bool { return u.State != UnitDone })
	parts, files, err := f.parts(ctx, job, units)
	if err != nil {
		return err
	}
	quotes := int64(0)
	for _, p := range parts {
		quotes += p.Fetch.Quotes
	}
	large := quotes > manyQuotes
	if large {
		defer f.garbage.limit(quotesGC)()
		defer f.freeMemory(ctx)
		f.freeMemory(ctx)
	}
	convert, err := f.converter(ctx, job.RateSet)
	if err != nil {
		return err
	}
	games := games(job, all, parts)
	var learned []Learned
	for _, app := range slices.Sorted(maps.Keys(games)) {
		if !games[app] {
			learned = append(learned, Learned{AppID: app})
			continue
		}
		g := &game{fetcher: f, convert: convert, app: app, units: units, parts: parts, files: files, large: large}
		same, err := g.unchanged(ctx, f.now())
		result := Learned{AppID: app}
		if err == nil && !same {
			result, err = g.validate(ctx, f.now())
		}
		if err != nil {
			return fmt.Errorf("validate responses of job %d, game %d: %w", job.ID, app, err)
		}
		learned = append(learned, result)
	}
	results := make([]ValidationResult, 0, len(parts))
	for _, p := range parts {
		results = append(results, p.ValidationResult)
	}
	listed, err := f.newlyListed(ctx, job, results)
	if err != nil {
		return fmt.Errorf("find missing prices in responses of job %d: %w", job.ID, err)
	}
	err = f.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if changed, err := filesChanged(tx, files, games); err != nil || changed {
			return err // the job is validated again
		}
		if first, err = StoreValidation(tx, job.ID, results, learned); err != nil || !first {
			return err
		}
		due, err = dueListed(tx, listed)
		return err
	})
	if !first {
		return err
	}
	if due {
		f.wake(WorkMissing)
	}
	for _, v := range results {
		if v.Quarantine != "" {
			f.log.Warn("response quarantined", "job", job.ID, "file", v.Unit.File, "reason", v.Quarantine)
		}
	}
	return err
}

// games returns the games of a job, and reports for each whether levels can be learned. They
// can be learned from a file's new response. A bulk job can also learn them from quotes
// requested by name. Other jobs request too few names.
func games(job *Job, units []FetchUnit, parts []*marketInFile) map[int32]bool {
	games := map[int32]bool{}
	for i := range units {
		u := &units[i]
		games[u.AppID] = games[u.AppID] || u.File == "" && job.Kind == Bulk
	}
	for _, p := range parts {
		games[p.Unit.AppID] = games[p.Unit.AppID] || p.isNew
	}
	return games
}

// parts returns the markets in the responses of a job's files, and the newest good responses
// of all files.
func (f *fetcher) parts(ctx context.Context, job *Job, units []FetchUnit) ([]*marketInFile, []MarketFile, error) {
	outcomes, err := readOutcomes(ctx, f.store, job.ID)
	if err != nil {
		return nil, nil, err
	}
	files, err := marketFiles(ctx, f.store)
	if err != nil {
		return nil, nil, err
	}
	var out []*marketInFile
	for _, u := range units {
		for _, id := range f.marketsOf(u) {
			p := &marketInFile{ValidationResult: ValidationResult{Unit: u, Fetch: MarketFetch{MarketID: id, Outcome: OutcomeOK}}}
			if f, ok := outcomes[UnitMarket{u.ID, id}]; ok {
				p.Fetch = f
			}
			for _, f := range files {
				if f.MarketID == id && f.AppID == u.AppID && f.File == u.File {
					p.base = f
				}
			}
			repeated := p.base.UnitID == u.ResponseUnitID
			// An earlier response is validated again unless it is the newest good one,
			// because its own job may not have validated it yet. Only its outcome in this job
			// is stored.
			p.Reused = repeated || u.ResponseUnitID != u.ID
			p.isNew = p.Fetch.Outcome == OutcomeOK && !repeated
			out = append(out, p)
		}
	}
	return out, files, nil
}

// marketsOf returns the ids of the markets in a unit's file, in order.
func (p *process) marketsOf(u FetchUnit) []int64 {
	src, ok := p.providers[u.Provider]
	if !ok || u.File == "" {
		return nil
	}
	d := src.Describe()
	keys := d.MarketsOf(u.File)
	var out []int64
	for id, m := range p.marketsByID {
		if m.provider == u.Provider && slices.Contains(keys, m.Key) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// game is the validation of one game's responses in a job. Providers that are queried by name
// take part with their stored quotes and the quotes of this job. Their markets have levels
// and are compared with others, but their responses are never refused as a whole.
type game struct {
	fetcher *fetcher
	convert *converter
	app     int32
	units   []FetchUnit     // completed units of all games
	parts   []*marketInFile // of all games
	files   []MarketFile    // of all games
	large   bool            // the job has more than manyQuotes
}

// learnAgain is how long a level set remains valid while responses do not change. Validating
// equal responses again would give the same result, because validation compares a response
// with responses that are at least a day old.
const learnAgain = time.Hour

// unchanged reports whether all new responses equal the newest good ones, and the level set
// was learned within the last hour. The responses are then good, and the level set remains
// valid.
func (g *game) unchanged(ctx context.Context, now time.Time) (bool, error) {
	at, err := learnedAt(ctx, g.fetcher.store, g.app)
	if age := now.Sub(at); err != nil || at.IsZero() || age < 0 || age > learnAgain {
		return false, err
	}
	if slices.ContainsFunc(g.units, func(u FetchUnit) bool { return u.AppID == g.app && u.File == "" }) {
		return false, nil
	}
	compared := map[[2]int64]bool{}
	for _, p := range g.parts {
		if p.Unit.AppID != g.app || !p.isNew {
			continue
		}
		pair := [2]int64{p.Unit.ResponseUnitID, p.base.UnitID}
		if p.base.UnitID == 0 || p.base.Quarantine != "" {
			return false, nil
		}
		if compared[pair] {
			continue
		}
		compared[pair] = true
		if same, err := sameResponse(ctx, g.fetcher.store, p.Unit.ResponseUnitID, p.base.UnitID); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// validate validates the responses of the game and returns what was learned.
func (g *game) validate(ctx context.Context, now time.Time) (Learned, error) {
	f := g.fetcher
	set, err := LevelSet(ctx, f.store, g.app)
	if err != nil {
		return Learned{}, err
	}
	if set == nil {
		set = pricing.NewSet(g.convert.rates.Dollar(g.convert.currency))
	}
	states, err := validationStates(ctx, f.store, g.app)
	if err != nil {
		return Learned{}, err
	}
	round := pricing.NewRound(now, set)
	for _, provider := range slices.Sorted(maps.Keys(f.providers)) {
		if err := g.add(ctx, round, now, provider, states); err != nil {
			return Learned{}, err
		}
	}
	result := round.Finish(func() { admission.Yield(ctx) })
	learned := g.apply(&result)
	return learned, g.describe(ctx)
}

// apply marks the refused parts, and returns what is to be stored.
func (g *game) apply(r *pricing.Result) Learned {
	out := Learned{AppID: g.app, Set: r.Set, Movers: r.Movers}
	for i := range r.Markets {
		o := &r.Markets[i]
		store := g.fetcher.marketsByID[o.ID].byName
		for _, p := range g.parts {
			if p.Unit.AppID != g.app || p.Fetch.MarketID != o.ID || !p.isNew {
				continue
			}
			store = store || !p.Reused
			if o.Refusal != nil {
				m := g.fetcher.marketsByID[o.ID]
				rival := cmp.Or(g.fetcher.marketsByID[o.Refusal.Rival].Key, strconv.FormatInt(o.Refusal.Rival, 10))
				p.Quarantine = fmt.Sprintf("%s: %s: quarantined: %s", m.provider, m.Key, o.Refusal.Text(rival))
				p.Fetch.Outcome = OutcomeQuarantined
			}
		}
		if store {
			out.States = append(out.States, ValidationState{MarketID: o.ID, State: o.State, History: o.History})
		}
	}
	return out
}
