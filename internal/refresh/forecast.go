package refresh

import (
	"context"
	"math"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// Forecast is the expected work of a bulk job.
type Forecast struct {
	Due       Due
	Budget    int64 // due items that cannot be requested from any provider now
	Providers []Cost
}

// Cost is the expected requests of a job to one provider.
type Cost struct {
	Provider string
	Requests int64
	Deferred int64 // requests that would be deferred
	// Background means that the background fetch sends the requests, not the job.
	Background bool
	Time       time.Duration // duration under the provider's limits; 0: no limit
	Hosts      []HostCost    // hosts with requests; nil for a paused provider
}

// HostCost is the expected requests of a job to one host of a provider. Requests beyond the
// budget are deferred until FreeAt.
type HostCost struct {
	Host     string // "": the provider has one host
	Requests int64
	Deferred int64
	Files    []string // deferred files
	Names    int64    // deferred names, if the provider is queried by name
	Why      Bound    // "": nothing is deferred
	FreeAt   time.Time
	Time     time.Duration
}

// Bound is the limit that defers requests to a host.
type Bound string

// The bounds.
const (
	BoundLimit      Bound = "limit"    // a rate limit with a longer period than a job waits
	BoundDay        Bound = "day"      // daily quota
	BoundMonth      Bound = "month"    // monthly quota
	BoundReported   Bound = "reported" // reported quota
	BoundRetryAfter Bound = "retryAfter"
	BoundBackground Bound = "background" // fetched in the background
)

// Forecast returns the expected work of a bulk job that starts now. It changes nothing and
// sends no request. It ignores circuit breakers, because an open circuit breaker lets one
// request through.
func (e *Engine) Forecast(ctx context.Context, forced bool) (Forecast, error) {
	return e.planner.forecast(ctx, forced)
}

func (p *planner) forecast(ctx context.Context, forced bool) (Forecast, error) {
	due, err := ReadDue(ctx, p.store, p.rules(p.now(), forced))
	if err != nil {
		return Forecast{}, err
	}
	paused, err := pausedProviders(ctx, p.store)
	if err != nil {
		return Forecast{}, err
	}
	var f Forecast
	for _, d := range due {
		f.Due.Due += d.Due.Due
		f.Due.TTL += d.TTL
		f.Due.NoSales += d.NoSales
	}
	requested := map[int32]int64{} // largest number of names that one provider requests, by game
	for _, name := range p.order {
		c, names, err := p.cost(ctx, p.providers[name].Describe(), due, paused[name])
		if err != nil {
			return f, err
		}
		f.Providers = append(f.Providers, c)
		for app, n := range names {
			requested[app] = max(requested[app], n)
		}
	}
	for app, n := range requested {
		f.Budget += notRequested(due[app], n)
	}
	return f, nil
}

// notRequested returns how many due items of a game no provider requests. names is the number of
// names of the game that are requested.
func notRequested(d DueNames, names int64) int64 {
	if names == 0 {
		return d.Due.Due
	}
	return max(0, d.Names-names)
}

// cost returns the expected requests to a provider for all due items, and how many names of
// each game they cover. It considers the limits, quotas and retry-after in force. The hosts
// of a provider work in parallel. Local files need no request.
func (p *planner) cost(ctx context.Context, d provider.Description, due map[int32]DueNames, paused bool) (Cost, map[int32]int64, error) {
	c, requested := Cost{Provider: d.Name, Background: InBackground(d)}, map[int32]int64{}
	budgets := map[string]*hostBudget{}
	var order []*hostBudget
	for _, q := range plannedRequests(d, due) {
		requested[q.app] = max(requested[q.app], 0)
		if paused {
			continue
		}
		if q.local {
			requested[q.app] = q.names
			continue
		}
		r := budgets[q.host]
		if r == nil {
			var err error
			if r, err = p.hostBudget(ctx, d, q.host); err != nil {
				return c, nil, err
			}
			budgets[q.host], order = r, append(order, r)
		}
		if names := r.reserve(q); !c.Background {
			requested[q.app] = max(requested[q.app], names)
		}
	}
	for _, r := range order {
		h := r.cost()
		c.Requests += h.Requests
		c.Deferred += h.Deferred
		c.Time = max(c.Time, h.Time)
		c.Hosts = append(c.Hosts, h)
	}
	return c, requested, nil
}

// hostBudget is the number of requests that the limits of a host allow.
type hostBudget struct {
	HostCost // requests counted so far
	limit    provider.Limit
	used     int64         // requests in the current period
	left     int64         // requests that a job can still send
	why      Bound         // why further requests are deferred
	freeAt   time.Time     // end of the deferral
	wait     time.Duration // wait before the first request
}

// limitTo lowers the number of requests left.
func (r *hostBudget) limitTo(left int64, why Bound, freeAt time.Time) {
	if left < r.left {
		r.left, r.why, r.freeAt = left, why, freeAt
	}
}

// reserve counts a planned request, and returns for how many names it can be sent.
func (r *hostBudget) reserve(q plannedRequest) (names int64) {
	sent := min(q.requests, r.left)
	r.left -= sent
	r.Requests += sent
	names = min(q.names, sent*q.size)
	if sent == q.requests {
		return names
	}
	r.Deferred += q.requests - sent
	r.Why, r.FreeAt = r.why, r.freeAt
	if q.file != "" {
		r.Files = append(r.Files, q.file)
	} else {
		r.Names += q.names - names
	}
	return names
}

func (r *hostBudget) cost() HostCost {
	if r.Requests > 0 {
		r.Time = r.wait + r.limit.Time(r.Requests+r.used)
	}
	return r.HostCost
}

// hostBudget returns the number of requests that the limits of a host allow. A job waits for
// a rate limit or a retry-after for up to Patience.
func (p *planner) hostBudget(ctx context.Context, d provider.Description, host string) (*hostBudget, error) {
	b, blocked, err := allowance.Of(ctx, p.store, d.Name, d.HostAt(host))
	if err != nil {
		return nil, err
	}
	r := &hostBudget{
		HostCost: HostCost{Host: host}, limit: b.Limit, used: int64(b.Used),
		left: math.MaxInt64, wait: max(0, blocked.Sub(p.now())),
	}
	if InBackground(d) {
		r.limitTo(0, BoundBackground, time.Time{})
		return r, nil
	}
	if r.wait > Patience {
		r.limitTo(0, BoundRetryAfter, blocked)
	}
	if t := b.Reported; t != nil && t.ResetsAt.Sub(p.now()) > Patience {
		r.limitTo(t.Left, BoundReported, t.ResetsAt)
	}
	for _, q := range b.Quotas {
		r.limitTo(q.Left, Bound(q.Period), q.ResetsAt)
	}
	if !b.Limit.None() && b.Limit.Stretch() > Patience {
		freeAt := b.ResetsAt
		if b.Used == 0 {
			freeAt = p.now().Add(b.Limit.Stretch()) // the period begins with the requests of this job
		}
		r.limitTo(int64(b.Left), BoundLimit, freeAt)
	}
	return r, nil
}

// plannedRequest is a file or the names of a game that a job requests from a provider.
type plannedRequest struct {
	app      int32
	host     string
	file     string // "": names
	local    bool
	requests int64
	names    int64 // number of names
	size     int64 // names per request
}

func plannedRequests(d provider.Description, due map[int32]DueNames) []plannedRequest {
	var out []plannedRequest
	if d.Shape == provider.Bulk {
		for _, file := range d.Files {
			if n := due[file.AppID].Names; n > 0 {
				out = append(out, plannedRequest{app: file.AppID, host: file.Host, file: file.Key, local: file.Local, requests: int64(max(file.Requests, 1)), names: n, size: n})
			}
		}
		return out
	}
	size := int64(max(d.BatchSize, 1))
	for _, app := range apps(d) {
		if n := due[app].Names; n > 0 {
			out = append(out, plannedRequest{app: app, host: d.HostOf(""), requests: (n + size - 1) / size, names: n, size: size})
		}
	}
	return out
}
