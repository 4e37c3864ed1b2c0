package refresh

import (
	"context"
	"math"
	"time"

	"assay/internal/provider"
)

// Forecast is what a refresh would do.
type Forecast struct {
	Due     Due
	Budget  int64 // of the due items, those for which nothing can be asked now
	Sources []Cost
}

// Cost is what one source would be asked.
type Cost struct {
	Source   string
	Requests int64
	Deferred int64 // requests beyond those, which would be put off
	// Background says that a job does not ask the source at all, and leaves what is
	// put off to be asked beside it.
	Background bool
	Time       time.Duration // at the source's limits, after what counts already; 0: it has none
}

// Forecast tells what a bulk job started now would do. It changes nothing and
// asks no source. Breakers do not count: they let a request through to see.
func (e *Engine) Forecast(ctx context.Context, forced bool) (Forecast, error) {
	due, err := e.store.DueByApp(ctx, e.rules(e.now(), forced))
	if err != nil {
		return Forecast{}, err
	}
	paused, err := e.store.PausedSources(ctx)
	if err != nil {
		return Forecast{}, err
	}
	var f Forecast
	for _, d := range due {
		f.Due.Due += d.Due.Due
		f.Due.TTL += d.TTL
		f.Due.NoSales += d.NoSales
	}
	asked := map[int32]int64{} // names of each game, of the source that is asked for most
	for _, name := range e.order {
		c, names, err := e.cost(ctx, e.sources[name].Describe(), due, paused[name])
		if err != nil {
			return f, err
		}
		f.Sources = append(f.Sources, c)
		for app, n := range names {
			asked[app] = max(asked[app], n)
		}
	}
	for app, n := range asked {
		f.Budget += leftOut(due[app], n)
	}
	return f, nil
}

// leftOut returns for how many due items of a game nothing is asked when so many
// names are.
func leftOut(d DueNames, names int64) int64 {
	if names == 0 {
		return d.Due.Due
	}
	return max(0, d.Names-names)
}

// cost tells what asking a source for all that is due takes, by what its limits,
// quotas and orders to wait leave now, and for how many names of each of its
// games it can be asked. Its hosts are asked side by side; what is on this
// machine costs no request.
func (e *Engine) cost(ctx context.Context, d provider.Description, due map[int32]DueNames, paused bool) (Cost, map[int32]int64, error) {
	c, asked := Cost{Source: d.Name, Background: InBackground(d)}, map[int32]int64{}
	rooms := map[string]*room{}
	for _, q := range questions(d, due) {
		asked[q.app] = max(asked[q.app], 0)
		if paused {
			continue
		}
		if c.Background {
			c.Deferred += q.requests
			continue
		}
		if q.local {
			asked[q.app] = q.names
			continue
		}
		r := rooms[q.host]
		if r == nil {
			var err error
			if r, err = e.room(ctx, d, q.host); err != nil {
				return c, nil, err
			}
			rooms[q.host] = r
		}
		sent := min(q.requests, r.left)
		r.left -= sent
		r.sent += sent
		c.Requests += sent
		c.Deferred += q.requests - sent
		asked[q.app] = max(asked[q.app], min(q.names, sent*q.size))
	}
	for _, r := range rooms {
		if r.sent > 0 {
			c.Time = max(c.Time, r.wait+r.limit.Time(r.sent+r.used))
		}
	}
	return c, asked, nil
}

// room is what a host leaves.
type room struct {
	limit provider.Limit
	used  int64         // requests that count already
	left  int64         // requests that a job can send before it puts off the rest
	sent  int64         // of those, what it would send
	wait  time.Duration // before the first one
}

// room tells what a host leaves. A job waits for a limit, or as it is told to, for
// as long as its patience lasts.
func (e *Engine) room(ctx context.Context, d provider.Description, host string) (*room, error) {
	b, blocked, err := e.store.Budget(ctx, d.Name, d.HostAt(host))
	if err != nil {
		return nil, err
	}
	r := &room{limit: b.Limit, used: int64(b.Used), left: math.MaxInt64, wait: max(0, blocked.Sub(e.now()))}
	for _, q := range b.Quotas {
		r.left = min(r.left, q.Left)
	}
	if !b.Limit.None() && b.Limit.Stretch() > Patience {
		r.left = min(r.left, int64(b.Left))
	}
	if t := b.Told; t != nil && t.ResetsAt.Sub(e.now()) > Patience {
		r.left = min(r.left, t.Left)
	}
	if r.wait > Patience {
		r.left = 0
	}
	return r, nil
}

// question is what a source would be asked for a game: one file, or its names.
type question struct {
	app      int32
	host     string
	local    bool
	requests int64
	names    int64 // that it is about
	size     int64 // names that one request is about
}

func questions(d provider.Description, due map[int32]DueNames) []question {
	var out []question
	if d.Shape == provider.Bulk {
		for _, file := range d.Files {
			if n := due[file.AppID].Names; n > 0 {
				out = append(out, question{app: file.AppID, host: file.Host, local: file.Local, requests: int64(max(file.Requests, 1)), names: n, size: n})
			}
		}
		return out
	}
	size := int64(max(d.BatchSize, 1))
	for _, app := range apps(d) {
		if n := due[app].Names; n > 0 {
			out = append(out, question{app: app, host: d.HostOf(""), requests: (n + size - 1) / size, names: n, size: size})
		}
	}
	return out
}
