package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/pricing"
	"assay/internal/provider"
)

const (
	// batchItems is the approximate number of items in a batch. It is large enough for one
	// commit, and small enough that a kill loses little work.
	batchItems = 500
	// singleNames is how many names a unit has if the provider takes one name per request.
	// The requests are sent one after another.
	singleNames = 50
	// missingCycle limits the items of a missing-price job.
	missingCycle = 20_000
)

// errNotPlannable rolls back the plan of a job that another process plans or that was cancelled.
var errNotPlannable = errors.New("job is planned by another process or no longer queued")

// Plan plans a queued job. It stores the items, batches, units and exchange rates in one
// transaction.
func (p *planner) Plan(ctx context.Context) (bool, error) {
	job, err := readQueuedJob(ctx, p.store)
	if err != nil || job == nil {
		return false, err
	}
	if len(p.providers) == 0 {
		return true, p.store.InTx(ctx, func(tx *db.Tx) error {
			return failJob(tx, job.ID, "no price provider is configured: set MARKET_PRICE_PROVIDERS")
		})
	}
	limits, err := p.providerLimits(ctx)
	if err != nil {
		return false, err
	}
	rates, err := p.rates(ctx)
	if errors.Is(err, ErrNoRatesYet) {
		return false, nil // the next sweep retries
	}
	if err != nil {
		return false, err
	}
	var units []FetchUnit
	var items int64
	err = p.store.InTx(ctx, func(tx *db.Tx) (err error) {
		units, items, err = p.plan(tx, job, limits, rates)
		return err
	})
	if errors.Is(err, errNotPlannable) {
		next, err := readQueuedJob(ctx, p.store)
		return next != nil && next.ID != job.ID, err // do not wait for the process that plans this one
	}
	if err != nil {
		return false, fmt.Errorf("plan job %d: %w", job.ID, err)
	}
	if items > manyItems {
		p.freeMemory(ctx)
	}
	p.wakeFetch()
	if !slices.ContainsFunc(units, func(u FetchUnit) bool { return u.File != "" && u.State == UnitPending }) {
		p.wake(WorkEstimate) // else the last file does
	}
	return true, nil
}

// providerLimits is what can be requested from the providers now.
type providerLimits struct {
	paused       map[string]bool
	requestsLeft map[string]int64 // by provider; only providers with a budget and without background fetch
}

func (p *planner) providerLimits(ctx context.Context) (providerLimits, error) {
	limits := providerLimits{requestsLeft: map[string]int64{}}
	var err error
	if limits.paused, err = pausedProviders(ctx, p.store); err != nil {
		return limits, err
	}
	for _, name := range p.order {
		d := p.providers[name].Describe()
		if !hasBudget(d) || InBackground(d) {
			continue
		}
		r, err := p.hostBudget(ctx, d, d.HostOf(""))
		if err != nil {
			return limits, err
		}
		limits.requestsLeft[name] = r.left
	}
	return limits, nil
}

// plan writes the plan of a job and returns its units and the number of its due items.
func (p *planner) plan(tx *db.Tx, job *Job, limits providerLimits, rates pricing.Rates) (units []FetchUnit, due int64, err error) {
	claimed, err := claimQueued(tx, job.ID)
	if err != nil {
		return nil, 0, err
	}
	if !claimed {
		return nil, 0, errNotPlannable
	}
	if kept, err := keepRetried(tx, job); err != nil {
		return nil, 0, err
	} else if !kept {
		return nil, 0, failJob(tx, job.ID, fmt.Sprintf("job %d was deleted because of its age before its items were retried: start a refresh instead", job.RetryOf))
	}
	rules := p.rules(job.CreatedAt, job.Forced)
	rules.RetryOf = job.RetryOf
	if job.Kind == Missing {
		rules.Now, rules.Missing, rules.Limit = tx.Now(), true, missingCycle
	}
	if err := chooseItems(tx, job, &rules); err != nil {
		return nil, 0, err
	}
	items, err := ReadPlan(tx, rules)
	if err != nil {
		return nil, 0, err
	}
	batches := batchesFor(items.pending)
	set, err := exchange.RateSet(tx, rates)
	if err != nil {
		return nil, 0, err
	}
	started, err := StartJob(tx, job.ID, batches, set)
	if err != nil {
		return nil, 0, err
	}
	if !started {
		return nil, 0, errNotPlannable
	}
	if err := items.Write(tx, job.ID, batches); err != nil {
		return nil, 0, err
	}
	units, err = p.planUnits(tx, job, items.Due, batches, limits)
	if err != nil {
		return nil, 0, err
	}
	if job.Kind == Bulk {
		if err := cancelDetached(tx); err != nil {
			return nil, 0, err
		}
	}
	return units, items.pending, InsertUnits(tx, units)
}

// batchesFor returns how many batches a job has. The number is a power of two, because
// batches are ranges of name buckets.
func batchesFor(items int64) int {
	n := 1
	for n < catalog.Buckets && int64(n)*batchItems < items {
		n *= 2
	}
	return n
}

// planUnits plans the units of all providers: every file of the games with due items, or the
// due names in calls as large as the provider allows.
func (p *planner) planUnits(tx *db.Tx, job *Job, planned map[int32]int64, batches int, limits providerLimits) ([]FetchUnit, error) {
	var units []FetchUnit
	for _, name := range p.order {
		d := p.providers[name].Describe()
		var own []FetchUnit
		var err error
		switch {
		case d.Shape == provider.Bulk:
			own, err = p.planFiles(tx, job, d, planned, batches)
		case InBackground(d):
			own, err = p.planBackground(tx, job, d, planned, batches)
		default:
			own, err = p.planNames(tx, job, d, planned, batches, limits)
		}
		if err != nil {
			return nil, fmt.Errorf("plan units of %s: %w", name, err)
		}
		for i := range own {
			if limits.paused[name] && own[i].State == UnitPending {
				own[i].State, own[i].ErrorKind = UnitDeferred, KindPaused
				own[i].Error = name + ": paused by an operator"
			}
		}
		units = append(units, own...)
	}
	return units, nil
}

// planFiles creates a unit for each file. A job for missing prices or chosen items reuses a
// file's newest response while it is fresh. If a response arrived too late for its own job, the
// next job uses it. If it is no longer fresh by then, the next job also requests the file again.
func (p *planner) planFiles(tx *db.Tx, job *Job, d provider.Description, planned map[int32]int64, batches int) ([]FetchUnit, error) {
	var units []FetchUnit
	for _, f := range d.Files {
		if planned[f.AppID] == 0 {
			continue
		}
		u := FetchUnit{
			JobID: job.ID, Provider: d.Name, AppID: f.AppID, File: f.Key,
			BatchTo: batches - 1, State: UnitPending,
		}
		newest, err := newestUnit(tx, d.Name, f.AppID, f.Key)
		if err != nil {
			return nil, err
		}
		if newest != nil && (job.Kind != Bulk || newest.Detached) {
			old := u
			old.State, old.FetchedAt, old.StatedAt, old.ResponseUnitID = UnitDone, newest.FetchedAt, newest.StatedAt, newest.ResponseUnitID
			switch {
			case p.isFresh(newest.FetchedAt, d.Interval):
				u = old
			case newest.Detached: // the new request may be late too
				units = append(units, old)
			}
		}
		units = append(units, u)
	}
	return units, nil
}

// minInterval is the minimum time for which a file's response is fresh.
const minInterval = 5 * time.Minute

// isFresh reports whether a response is too recent to be requested again. A response from the
// future is not fresh, because the clock has been set back.
func (p *planner) isFresh(fetched time.Time, interval time.Duration) bool {
	age := p.now().Sub(fetched)
	return age >= 0 && age < max(interval, minInterval)
}

// planNames creates units of the due names of each game that the provider quotes. If the
// budget does not allow all calls, names are chosen by priority.
func (p *planner) planNames(tx *db.Tx, job *Job, d provider.Description, planned map[int32]int64, batches int, limits providerLimits) ([]FetchUnit, error) {
	size := max(d.BatchSize, 1)
	if d.Shape == provider.Single {
		size = singleNames
	}
	var units []FetchUnit
	for _, app := range apps(d) {
		if planned[app] == 0 {
			continue
		}
		names, err := dueNamesOf(tx, job.ID, app)
		if err != nil {
			return nil, err
		}
		last, err := findLastRequested(tx, d.Name, app)
		if err != nil {
			return nil, err
		}
		var own []FetchUnit
		for part := range slices.Chunk(names, size) {
			own = append(own, unitOf(job, d, app, part))
		}
		units = append(units, resumeAfter(own, last)...)
	}
	if calls, limited := limits.requestsLeft[d.Name]; limited && int64(len(units)) > calls {
		return p.planByPriority(tx, job, d, batches, int(calls))
	}
	return units, nil
}

// unitOf creates a unit of names. The names are ordered by batch.
func unitOf(job *Job, d provider.Description, app int32, names []PlannedName) FetchUnit {
	u := FetchUnit{
		JobID: job.ID, Provider: d.Name, AppID: app, State: UnitPending,
		BatchFrom: names[0].Batch, BatchTo: names[len(names)-1].Batch,
		Names: make([]string, len(names)),
	}
	for i, n := range names {
		u.Names[i] = n.Name
	}
	return u
}

// planByPriority creates units of the due names with the highest priority, up to the number
// of calls. It counts the other names as deferred.
func (p *planner) planByPriority(tx *db.Tx, job *Job, d provider.Description, batches, calls int) ([]FetchUnit, error) {
	names, err := p.candidates(tx, job, d)
	if err != nil {
		return nil, err
	}
	size := max(d.BatchSize, 1)
	best, later := map[int32][]PlannedName{}, map[int32]int{}
	for _, n := range names {
		full := len(best[n.app])%size == 0
		if full && calls == 0 {
			later[n.app]++
			continue
		}
		if full {
			calls--
		}
		best[n.app] = append(best[n.app], n.PlannedName)
	}
	var units []FetchUnit
	for _, app := range apps(d) {
		slices.SortFunc(best[app], func(a, b PlannedName) int {
			return cmp.Or(cmp.Compare(a.Batch, b.Batch), strings.Compare(a.Name, b.Name))
		})
		for part := range slices.Chunk(best[app], size) {
			units = append(units, unitOf(job, d, app, part))
		}
		if later[app] > 0 {
			units = append(units, deferredNames(job, d, app, batches, later[app]))
		}
	}
	return units, nil
}

// resumeAfter rotates the units so that they begin after the last requested name. Units are
// requested in order. If a limit stops a job early, the next job continues with the names that
// follow, so every name is requested eventually.
func resumeAfter(units []FetchUnit, last string) []FetchUnit {
	next := slices.IndexFunc(units, func(u FetchUnit) bool { return afterInOrder(u.Names[len(u.Names)-1], last) })
	if last == "" || next < 0 {
		return units
	}
	return slices.Concat(units[next:], units[:next])
}

// afterInOrder reports whether name comes after other in the order of a plan.
func afterInOrder(name, other string) bool {
	return cmp.Or(cmp.Compare(catalog.Bucket(name), catalog.Bucket(other)), cmp.Compare(name, other)) > 0
}

// apps returns the games that a provider quotes, in order.
func apps(d provider.Description) []int32 {
	var out []int32
	for _, m := range d.Markets {
		out = append(out, m.AppIDs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
