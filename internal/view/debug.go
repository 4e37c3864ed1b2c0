package view

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/steam"
	"assay/internal/refresh"
)

// ProviderDebug returns the state of every provider, from recorded calls only.
func (r *Reader) ProviderDebug(ctx context.Context) (ProvidersDebug, error) {
	out := ProvidersDebug{Providers: []ProviderDebug{}, Unconfigured: r.o.Unconfigured}
	if out.Unconfigured == nil {
		out.Unconfigured = []Unconfigured{}
	}
	providers, err := ProviderStates(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	states, err := refresh.MarketStates(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	markets, err := Markets(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	instances, err := refresh.Instances(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	claims, err := Claims(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	later, err := LaterNames(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	files, err := ProviderFiles(ctx, r.o.Store)
	if err != nil {
		return out, err
	}
	byKey := map[[2]string]refresh.MarketState{}
	for id, s := range states {
		byKey[[2]string{markets[id].Provider, markets[id].Key}] = s
	}
	for _, src := range r.o.Providers {
		d := src.Describe()
		hosts, err := r.hosts(ctx, d)
		if err != nil {
			return out, err
		}
		s := r.provider(d, providers[d.Name], hosts)
		s.Background, s.LaterNames = refresh.InBackground(d), later[d.Name]
		s.addInstances(r, instances, claims)
		for _, m := range d.Markets {
			s.Markets = append(s.Markets, marketDebug(d, m, byKey[[2]string{d.Name, m.Key}], hosts))
		}
		s.addHealth(d, files[d.Name])
		out.Providers = append(out.Providers, s)
	}
	if out.Rates, err = r.rates(ctx); err != nil {
		return out, err
	}
	out.Inventories, err = r.inventories(ctx)
	return out, err
}

// inventories reports pulls without starting one.
func (r *Reader) inventories(ctx context.Context) (InventoryDebug, error) {
	if r.o.Inventories == nil {
		return InventoryDebug{HostDebug: hostDebug(provider.Description{}, "", provider.ClientState{}), Requests: []RequestDebug{}}, nil
	}
	c := r.o.Inventories.Snapshot()
	budget, until, err := allowance.New(r.o.Store, steam.Name, r.o.SteamHost).State(ctx)
	if err != nil {
		return InventoryDebug{}, err
	}
	if c.Budget = budget; until.After(c.BlockedUntil) {
		c.BlockedUntil = until
	}
	return InventoryDebug{HostDebug: hostDebug(provider.Description{}, r.o.SteamHost.Key, c), Requests: requests(c.Requests)}, nil
}

// rates reports exchange rates without requesting any.
func (r *Reader) rates(ctx context.Context) (RatesDebug, error) {
	out := RatesDebug{From: "none", Rates: []RateDebug{}, Requests: []RequestDebug{}}
	if r.o.Rates == nil {
		return out, nil
	}
	rates, state, err := r.o.Rates.Known(ctx)
	if err != nil {
		return out, err
	}
	now := r.o.Now()
	out.From, out.Old = r.o.Rates.Place(), len(rates.Old(now)) > 0
	out.ReadAt, out.LastError, out.LastErrorAt = when(state.ReadAt), text(state.LastError), when(state.LastErrorAt)
	for _, c := range rates.Currencies() {
		out.Rates = append(out.Rates, RateDebug{Currency: c, Rate: rates[c].Value, Date: rates[c].Date, Old: rates[c].Old(now)})
	}
	if r.o.RatesClient != nil {
		out.NextAt = when(state.DueAt)
		out.Requests = requests(r.o.RatesClient.Snapshot().Requests)
	}
	return out, nil
}

func requests(sent []provider.Sent) []RequestDebug {
	out := make([]RequestDebug, 0, len(sent))
	for _, q := range sent {
		out = append(out, RequestDebug{
			At: q.Time, Method: q.Method, Host: q.Host, Path: q.Path, Status: q.Status,
			DurationMs: milliseconds(q.Duration), Bytes: q.Bytes, Attempt: q.Attempt, Error: string(q.Kind),
		})
	}
	return out
}

// hosts reports the hosts of a provider: what all processes share by the records,
// the rest as this one knows it.
func (r *Reader) hosts(ctx context.Context, d provider.Description) (map[string]provider.ClientState, error) {
	hosts := r.o.Clients[d.Name].Snapshot()
	for key, c := range hosts {
		budget, until, err := allowance.New(r.o.Store, d.Name, d.HostAt(key)).State(ctx)
		if err != nil {
			return nil, err
		}
		if c.Budget = budget; until.After(c.BlockedUntil) {
			c.BlockedUntil = until
		}
		hosts[key] = c
	}
	return hosts, nil
}

// addHealth adds the files and the health that follows from their last fetches.
func (s *ProviderDebug) addHealth(d provider.Description, files map[string]ProviderFile) {
	var records []provider.Record
	for _, f := range d.Files {
		stored := files[f.Key]
		records = append(records, stored.Record())
		s.Files = append(s.Files, FileDebug{
			File: f.Key, AppID: f.AppID, Markets: f.Markets, Health: stored.Record().Health(), Failures: stored.Failures,
			LastSuccess: when(stored.LastSuccess), LastError: text(stored.LastError), LastErrorAt: when(stored.LastErrorAt),
		})
	}
	if len(d.Files) == 0 {
		records = append(records, files[""].Record())
	}
	quarantined := slices.ContainsFunc(s.Markets, func(m MarketDebug) bool { return m.Quarantine != nil })
	s.Health = provider.HealthOf(records, provider.BreakerState(s.Breaker), quarantined)
}

// addInstances lists the instances of a provider, and its requests in progress.
func (s *ProviderDebug) addInstances(r *Reader, instances []refresh.Instance, claims []Claim) {
	for _, i := range instances {
		if slices.ContainsFunc(i.Endpoints, func(a refresh.Endpoint) bool { return a.Provider == s.Provider }) {
			s.Instances = append(s.Instances, r.providerInstance(i, s.Provider))
		}
	}
	for _, c := range claims {
		if c.Provider == s.Provider {
			s.Workers = append(s.Workers, worker(c))
		}
	}
}

func worker(c Claim) Worker {
	return Worker{Owner: c.Owner, Kind: c.Kind, Work: c.Work, Since: c.Since, Token: c.Token}
}

func (r *Reader) provider(d provider.Description, stored ProviderState, hosts map[string]provider.ClientState) ProviderDebug {
	c := provider.Summary(hosts)
	s := ProviderDebug{
		Provider: d.Name, Title: d.Title, Configured: true, Paused: stored.Paused,
		Shape: string(d.Shape), BatchSize: d.BatchSize, IntervalSeconds: seconds(d.Interval), Terms: d.Terms,
		Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil), Budget: budget(c.Budget), LatencyMs: latency(c.Latency),
		LastSuccess: when(stored.LastSuccess), LastError: text(stored.LastError), LastErrorAt: when(stored.LastErrorAt),
		ResponsesByStatus: answers(c.Answers), Instances: []ProviderInstance{}, Workers: []Worker{},
		Hosts: []HostDebug{}, Files: []FileDebug{}, Markets: []MarketDebug{}, Requests: requests(c.Requests),
	}
	if c.LastErrorAt.After(stored.LastErrorAt) {
		s.LastError, s.LastErrorAt = text(c.LastError), when(c.LastErrorAt)
	}
	if c.LastSuccess.After(stored.LastSuccess) {
		s.LastSuccess = when(c.LastSuccess)
	}
	for _, h := range d.Hosts {
		s.Hosts = append(s.Hosts, hostDebug(d, h.Key, hosts[h.Key]))
	}
	return s
}

func hostDebug(d provider.Description, host string, c provider.ClientState) HostDebug {
	h := HostDebug{
		Host: host, Files: []string{}, Budget: budget(c.Budget), Breaker: string(cmp.Or(c.Breaker, provider.BreakerClosed)), BlockedUntil: when(c.BlockedUntil),
		LastSuccess: when(c.LastSuccess), LastError: text(c.LastError), LastErrorAt: when(c.LastErrorAt),
		LatencyMs: latency(c.Latency), ResponsesByStatus: answers(c.Answers), Took: c.Took,
	}
	for _, f := range d.Files {
		if f.Host == host && !f.Local {
			h.Files = append(h.Files, f.Key)
		}
	}
	return h
}

func budget(b provider.Budget) Budget {
	out := Budget{Limit: int64(b.Limit.Requests), PeriodSeconds: seconds(b.Limit.Per), Used: int64(b.Used), Quotas: []Quota{}, Forecast: forecast(b.Forecast), Low: b.Low()}
	if b.Limit.Requests > 0 {
		left := int64(b.Left)
		out.Left, out.ResetsAt = &left, when(b.ResetsAt)
	}
	for _, q := range b.Quotas {
		out.Quotas = append(out.Quotas, Quota{
			Period: string(q.Period), Limit: q.Limit, Used: q.Used, Left: q.Left, ResetsAt: q.ResetsAt,
			Forecast: forecast(q.Forecast), Low: q.Forecast.Low,
		})
	}
	if t := b.Reported; t != nil {
		out.Reported = &ReportedQuota{
			Period: text(string(t.Period)), Left: t.Left, ReportedAt: t.At, ResetsAt: t.ResetsAt,
			Forecast: forecast(t.Forecast), Low: t.Forecast.Low,
		}
		if t.Limit > 0 {
			out.Reported.Limit = &t.Limit
		}
	}
	return out
}

func forecast(o provider.Forecast) Forecast {
	if o.Pace.Over == 0 {
		return Forecast{}
	}
	return Forecast{Pace: &Pace{Requests: o.Pace.Requests, Seconds: seconds(o.Pace.Over)}, RunsOutAt: when(o.RunsOutAt)}
}

func latency(l provider.Latency) Latency {
	return Latency{P50: milliseconds(l.P50), P95: milliseconds(l.P95), P99: milliseconds(l.P99)}
}

func answers(byStatus map[int]int64) map[string]int64 {
	out := make(map[string]int64, len(byStatus))
	for status, n := range byStatus {
		out[strconv.Itoa(status)] = n
	}
	return out
}

// marketDebug reports a market; breaker and retry-after are those of the hosts
// that serve it.
func marketDebug(d provider.Description, m provider.Market, s refresh.MarketState, hosts map[string]provider.ClientState) MarketDebug {
	current := map[string]provider.ClientState{}
	files := []string{}
	for _, f := range d.Files {
		if !slices.Contains(f.Markets, m.Key) {
			continue
		}
		files = append(files, f.Key)
		if c, ok := hosts[f.Host]; ok && !f.Local {
			current[f.Host] = c
		}
	}
	if len(d.Files) == 0 {
		current = hosts
	}
	c := provider.Summary(current)
	return MarketDebug{
		Files: files, Hosts: slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(current)))), Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil),
		LastSuccess: when(s.LastSuccess), LastError: text(s.LastError), LastErrorAt: when(s.LastErrorAt),
		Market: m.Key, Title: m.Title, AppIDs: m.AppIDs, SalesWindowSeconds: seconds(m.SalesWindow), Pool: m.Pool,
		LastFetchedAt: when(s.FetchedAt), LastOutcome: s.Outcome, Quotes: s.Quotes, Rejected: s.Rejected,
		Quarantine: text(s.Quarantine), QuarantinedSince: when(s.QuarantinedSince),
	}
}

// debugJobs is how many of the last jobs JobDebug shows.
const debugJobs = 10

// debugEvents is how many of the newest events JobDebug shows.
const debugEvents = 50

// JobDebug returns what waits, what is claimed, and why items failed.
func (r *Reader) JobDebug(ctx context.Context) (JobDebug, error) {
	d := JobDebug{Queues: []QueueDepth{}, Instances: []Instance{}, Workers: []Worker{}, Scheduled: []ScheduledRun{}, Jobs: []JobSummary{}, Failures: []FailureReason{}, Events: []Event{}}
	now := r.o.Now()
	depths, oldest, err := Depths(ctx, r.o.Store, now)
	if err != nil {
		return d, err
	}
	for _, q := range depths {
		if q.Count > 0 {
			d.Queues = append(d.Queues, QueueDepth(q))
		}
	}
	if !oldest.IsZero() {
		d.OldestPendingSec = seconds(now.Sub(oldest))
	}
	if err := r.addInstances(ctx, &d); err != nil {
		return d, err
	}
	for name, at := range r.o.Scheduled() {
		d.Scheduled = append(d.Scheduled, ScheduledRun{Name: name, At: at})
	}
	slices.SortFunc(d.Scheduled, func(a, b ScheduledRun) int { return a.At.Compare(b.At) })
	events, err := event.List(ctx, r.o.Store, debugEvents)
	if err != nil {
		return d, err
	}
	for _, e := range events {
		d.Events = append(d.Events, Event{ID: strconv.FormatInt(e.ID, 10), Kind: string(e.Kind), At: e.At, Data: e.Data})
	}
	return d, r.addJobs(ctx, &d, now)
}

// addInstances lists who works, and on what.
func (r *Reader) addInstances(ctx context.Context, d *JobDebug) error {
	instances, err := refresh.Instances(ctx, r.o.Store)
	if err != nil {
		return err
	}
	claims, err := Claims(ctx, r.o.Store)
	if err != nil {
		return err
	}
	working := map[string]int{}
	for _, c := range claims {
		d.Workers = append(d.Workers, worker(c))
		working[c.Owner]++
	}
	for _, i := range instances {
		providers := []string{}
		for _, a := range i.Endpoints {
			providers = append(providers, a.Provider)
		}
		slices.Sort(providers)
		d.Instances = append(d.Instances, Instance{
			Owner: i.Owner, Version: i.Version, Answering: i.Owner == r.o.Owner, StartedAt: i.StartedAt,
			Providers: slices.Compact(providers), Heartbeat: i.Heartbeat, HeartbeatAt: when(i.HeartbeatAt), Working: working[i.Owner],
		})
	}
	return nil
}

func (r *Reader) addJobs(ctx context.Context, d *JobDebug, now time.Time) error {
	rows, err := Jobs(ctx, r.o.Store, "", 1<<62, debugJobs)
	if err != nil {
		return err
	}
	jobs, err := r.jobs(ctx, rows)
	if err != nil {
		return err
	}
	var failed []int64 // the others have no failed items to read
	for i := range jobs {
		if rows[i].Counts.Failed+rows[i].Counts.NoQuote > 0 {
			failed = append(failed, rows[i].ID)
		}
		d.Jobs = append(d.Jobs, JobSummary{Job: jobs[i], DurationSeconds: duration(&rows[i], now)})
	}
	d.Failures, _, err = r.failures(ctx, failed)
	return err
}

// causesShown is how many causes of failures are listed.
const causesShown = 20

// JobFailures groups all failed items of a job by cause, and returns how many there are
// of causes beyond the list.
func (r *Reader) JobFailures(ctx context.Context, id int64) (list []FailureReason, others int64, err error) {
	return r.failures(ctx, []int64{id})
}

func (r *Reader) failures(ctx context.Context, jobs []int64) (list []FailureReason, others int64, err error) {
	list = []FailureReason{}
	if len(jobs) == 0 {
		return list, 0, nil
	}
	causes, others, err := Causes(ctx, r.o.Store, jobs, causesShown)
	for _, c := range causes {
		f := FailureReason{Cause: c.Error, Count: c.Count, Items: c.Items, SampleNames: []string{}}
		for _, k := range c.Items {
			f.SampleNames = append(f.SampleNames, k.Name)
		}
		list = append(list, f)
	}
	return list, others, err
}

// duration is how long a job ran, or has been running; nil before its start. A
// clock set back meanwhile makes it 0.
func duration(j *refresh.Job, now time.Time) *float64 {
	if j.StartedAt.IsZero() {
		return nil
	}
	end := j.FinishedAt
	if end.IsZero() {
		end = now
	}
	s := max(0, end.Sub(j.StartedAt).Seconds())
	return &s
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Health reports whether the service works. With details it returns more, for
// administrators only.
func (r *Reader) Health(ctx context.Context, details bool) (Health, error) {
	now := r.o.Now()
	h := Health{
		Status: "ok", Version: r.o.Version, UptimeSeconds: seconds(now.Sub(r.o.Started)),
		Checks: map[string]string{"database": "ok", "schema": "ok", "queue": "ok"},
	}
	fail := func(check string, err error) {
		h.Status, h.Checks[check] = "failing", "failing"
		if details {
			if h.Details == nil {
				h.Details = map[string]any{}
			}
			h.Details[check+"Error"] = err.Error()
		}
	}
	if err := r.o.Store.Healthy(ctx); err != nil {
		fail("database", err)
		if errors.Is(err, db.ErrReadOnly) {
			h.Checks["database"] = "readOnly"
		}
	}
	schema, err := r.o.Store.SchemaVersion(ctx)
	if err != nil {
		fail("schema", err)
	}
	if !details {
		if err := catalog.QueueAnswers(ctx, r.o.Store); err != nil {
			fail("queue", err)
		}
		return h, nil
	}
	q, err := ReadMissingQueue(ctx, r.o.Store, now)
	if err != nil {
		fail("queue", err)
	} else {
		if h.Details == nil {
			h.Details = map[string]any{}
		}
		h.Details["schemaVersion"] = schema
		h.Details["missingPending"] = q.Due
		h.Details["missingWaiting"] = q.Waiting
	}
	r.healthOfLedger(ctx, &h)
	return h, nil
}
