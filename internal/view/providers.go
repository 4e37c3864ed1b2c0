package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"assay/internal/admission"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/steam"
	"assay/internal/refresh"
)

// ProvidersDebug is the response of GET /api/market-prices/provider-debug.
type ProvidersDebug struct {
	Providers []ProviderDebug `json:"providers"`
	// Unconfigured lists the providers that get no requests, with the reason.
	Unconfigured []Unconfigured `json:"unconfigured"`
	Rates        RatesDebug     `json:"exchangeRates"`
	Inventories  InventoryDebug `json:"inventories"`
}

// InventoryDebug describes Steam's responses to this instance's inventory requests. All instances
// and the provider steam share the budget.
type InventoryDebug struct {
	HostDebug
	Requests []RequestDebug `json:"requests"` // the last 50, newest first
}

// Unconfigured is a provider that gets no requests.
type Unconfigured struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason"`
}

// ProviderDebug is the state of a provider, based on recorded calls only. If the provider has
// several hosts, budget, breaker and blockedUntil describe the host that accepts a request first.
type ProviderDebug struct {
	Provider          string             `json:"provider"`
	Title             string             `json:"title"`
	Configured        bool               `json:"configured"`
	Paused            bool               `json:"paused"`
	Health            provider.Health    `json:"health"` // unknown, healthy, degraded or down
	Shape             string             `json:"shape"`
	Background        bool               `json:"background"`    // runs do not wait for it; the background fetch requests it within its budget
	DeferredNames     int64              `json:"deferredNames"` // names deferred by the last full run
	BatchSize         int                `json:"batchSize"`
	IntervalSeconds   int64              `json:"intervalSeconds"`
	Terms             string             `json:"terms"`
	Budget            Budget             `json:"budget"`
	Breaker           string             `json:"breaker"` // closed, open or halfOpen
	BlockedUntil      *time.Time         `json:"blockedUntil"`
	LastSuccess       *time.Time         `json:"lastSuccess"`
	LastError         *string            `json:"lastError"`
	LastErrorAt       *time.Time         `json:"lastErrorAt"`
	LatencyMs         Latency            `json:"latencyMs"`
	ResponsesByStatus map[string]int64   `json:"responsesByStatus"`
	Instances         []ProviderInstance `json:"instances"` // instances that request it; latency, statuses and requests are from the responding instance
	Workers           []Claim            `json:"workers"`   // requests in progress
	Hosts             []HostDebug        `json:"hosts"`
	Files             []FileDebug        `json:"files"` // empty for a provider that is requested by name
	Markets           []MarketDebug      `json:"markets"`
	Requests          []RequestDebug     `json:"requests"` // the last 50, newest first
}

// FileDebug is the result of the last fetches of a file, such as a price list.
type FileDebug struct {
	File        string          `json:"file"`
	AppID       int32           `json:"appId"`
	Markets     []string        `json:"markets"`
	Health      provider.Health `json:"health"`   // unknown, healthy, degraded or down
	Failures    int64           `json:"failures"` // consecutive failures
	LastSuccess *time.Time      `json:"lastSuccess"`
	LastError   *string         `json:"lastError"`
	LastErrorAt *time.Time      `json:"lastErrorAt"`
}

// HostDebug is the state of one host of a provider since the start of this instance. Each host
// has a separate limit, circuit breaker and retry-after.
type HostDebug struct {
	Host              string           `json:"host"`  // empty if the provider has a single host
	Files             []string         `json:"files"` // files on this host; empty for a provider that is requested by name
	Budget            Budget           `json:"budget"`
	Breaker           string           `json:"breaker"` // closed, open or halfOpen
	BlockedUntil      *time.Time       `json:"blockedUntil"`
	LastSuccess       *time.Time       `json:"lastSuccess"`
	LastError         *string          `json:"lastError"`
	LastErrorAt       *time.Time       `json:"lastErrorAt"`
	LatencyMs         Latency          `json:"latencyMs"`
	ResponsesByStatus map[string]int64 `json:"responsesByStatus"`

	Took provider.Histogram `json:"-"` // for metrics
}

// Latency holds quantiles of the recorded response times, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// MarketDebug is the state of one market of a provider.
type MarketDebug struct {
	Market             string     `json:"market"`
	Title              string     `json:"title"`
	AppIDs             []int32    `json:"appIds"`
	SalesWindowSeconds int64      `json:"salesWindowSeconds"`
	Pool               string     `json:"pool"`
	LastFetchedAt      *time.Time `json:"lastFetchedAt"`
	LastOutcome        string     `json:"lastOutcome"`
	Quotes             int64      `json:"quotes"`
	Rejected           int64      `json:"rejected"`
	Files              []string   `json:"files"` // files that contain its quotes; empty for a provider that is requested by name
	Hosts              []string   `json:"hosts"` // hosts that serve the files
	Breaker            string     `json:"breaker"`
	BlockedUntil       *time.Time `json:"blockedUntil"`
	LastSuccess        *time.Time `json:"lastSuccess"` // kept after the jobs are removed, like the errors
	LastError          *string    `json:"lastError"`
	LastErrorAt        *time.Time `json:"lastErrorAt"`
	Quarantine         *string    `json:"quarantine"` // why the last response was quarantined
	QuarantinedSince   *time.Time `json:"quarantinedSince"`
}

// RequestDebug is one recorded request with masked secrets.
type RequestDebug struct {
	At         time.Time `json:"at"`
	Method     string    `json:"method"`
	Host       string    `json:"host"`
	Path       string    `json:"path"`
	Status     int       `json:"status"` // 0: no response
	DurationMs float64   `json:"durationMs"`
	Bytes      int64     `json:"bytes"`
	Attempt    int       `json:"attempt"`
	Error      string    `json:"error"`
}

// ProviderDebug returns the state of every provider, based on recorded calls only.
func (r *ProviderReader) ProviderDebug(ctx context.Context) (ProvidersDebug, error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return ProvidersDebug{}, err
	}
	defer leave()
	return r.ReadProviders(ctx)
}

// ReadProviders is like ProviderDebug, but does not wait for the admission gate.
func (r *ProviderReader) ReadProviders(ctx context.Context) (ProvidersDebug, error) {
	out := ProvidersDebug{Providers: []ProviderDebug{}, Unconfigured: r.o.Unconfigured}
	if out.Unconfigured == nil {
		out.Unconfigured = []Unconfigured{}
	}
	var (
		providers map[string]ProviderState
		states    map[int64]refresh.MarketState
		markets   map[int64]refresh.MarketName
		instances []refresh.Instance
		claims    []Claim
		later     map[string]int64
		files     map[string]map[string]ProviderFile
	)
	err := Together(ctx,
		into(&providers, from(r.o.Store, ProviderStates)), into(&states, from(r.o.Store, refresh.MarketStates)),
		into(&markets, from(r.o.Store, Markets)), into(&instances, from(r.o.Store, refresh.Instances)),
		into(&claims, from(r.o.Store, Claims)), into(&later, from(r.o.Store, DeferredNames)), into(&files, from(r.o.Store, ProviderFiles)),
	)
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
		s.Background, s.DeferredNames = refresh.InBackground(d), later[d.Name]
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

// inventories describes Steam's responses. It sends no request.
func (r *ProviderReader) inventories(ctx context.Context) (InventoryDebug, error) {
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

// hosts returns the state of each host of a provider. Budgets cover all processes; everything
// else covers this process only.
func (r *ProviderReader) hosts(ctx context.Context, d provider.Description) (map[string]provider.ClientState, error) {
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

// addHealth adds the files, and the health computed from their last fetches.
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

// addInstances adds the instances of a provider, and its requests in progress.
func (s *ProviderDebug) addInstances(r *ProviderReader, instances []refresh.Instance, claims []Claim) {
	for _, i := range instances {
		if slices.ContainsFunc(i.Endpoints, func(a refresh.Endpoint) bool { return a.Provider == s.Provider }) {
			s.Instances = append(s.Instances, r.providerInstance(i, s.Provider))
		}
	}
	for _, c := range claims {
		if c.Provider == s.Provider {
			s.Workers = append(s.Workers, c)
		}
	}
}

func (r *ProviderReader) provider(d provider.Description, stored ProviderState, hosts map[string]provider.ClientState) ProviderDebug {
	c := provider.Summary(hosts)
	s := ProviderDebug{
		Provider: d.Name, Title: d.Title, Configured: true, Paused: stored.Paused,
		Shape: string(d.Shape), BatchSize: d.BatchSize, IntervalSeconds: seconds(d.Interval), Terms: d.Terms,
		Breaker: string(c.Breaker), BlockedUntil: when(c.BlockedUntil), Budget: budget(c.Budget), LatencyMs: latency(c.Latency),
		LastSuccess: when(stored.LastSuccess), LastError: text(stored.LastError), LastErrorAt: when(stored.LastErrorAt),
		ResponsesByStatus: statusCounts(c.Statuses), Instances: []ProviderInstance{}, Workers: []Claim{},
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
		LatencyMs: latency(c.Latency), ResponsesByStatus: statusCounts(c.Statuses), Took: c.Took,
	}
	for _, f := range d.Files {
		if f.Host == host && !f.Local {
			h.Files = append(h.Files, f.Key)
		}
	}
	return h
}

func latency(l provider.Latency) Latency {
	return Latency{P50: milliseconds(l.P50), P95: milliseconds(l.P95), P99: milliseconds(l.P99)}
}

func statusCounts(byStatus map[int]int64) map[string]int64 {
	out := make(map[string]int64, len(byStatus))
	for status, n := range byStatus {
		out[strconv.Itoa(status)] = n
	}
	return out
}

// marketDebug returns the state of a market. Breaker and BlockedUntil describe the hosts that
// serve it.
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
