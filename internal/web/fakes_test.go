package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/access"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view"
)

const (
	marketSecret = "market-secret-of-the-tests"
	adminToken   = "admin-token-of-the-tests"
)

// trapNames are names that change if code trims, cleans or decodes them twice.
var trapNames = []string{
	"★ Karambit | Doppler (Factory New)",
	"<script>alert(1)</script>",
	"..",
	".",
	"a/b//c",
	"100%2F%20Real",
	"Line one\nline two",
	"Trailing space ",
	" Leading space",
	"Double  spaces   here",
	"#1 Fan? & + = ; ~",
	`"Quotes" 'and' &lt;entities&gt;`,
	"carriage\rreturn\ttab",
	"right-to-left \u202egnol",
	"龍王 | 壱",
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 10, 5, 14, 3, 22, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fakeSecrets are credentials that tests rotate.
type fakeSecrets struct {
	mu   sync.Mutex
	live map[Role][]string
}

func newSecrets() *fakeSecrets {
	return &fakeSecrets{live: map[Role][]string{Read: {marketSecret}, Admin: {adminToken}}}
}

func (f *fakeSecrets) set(role Role, secrets ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[role] = secrets
}

func (f *fakeSecrets) Match(role Role, presented string) (Fingerprint, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sha256.Sum256([]byte(presented)), slices.Contains(f.live[role], presented)
}

func (f *fakeSecrets) Live(role Role, secret Fingerprint) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.live[role], func(s string) bool { return sha256.Sum256([]byte(s)) == secret })
}

// fakeLimiter reaches its limit after a few failures per address.
type fakeLimiter struct {
	mu    sync.Mutex
	limit int
	seen  map[netip.Addr]int
}

func (f *fakeLimiter) Fail(client netip.Addr) access.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[client]++
	if f.seen[client] > f.limit {
		return access.Failure{RetryAfter: 41 * time.Second, Log: true}
	}
	return access.Failure{Log: true}
}

func (f *fakeLimiter) Wait(context.Context, time.Duration) {}

// fakeAssay implements the readers and the Refresher with generated data.
type fakeAssay struct {
	now func() time.Time

	mu        sync.Mutex
	jobs      []view.Job // newest first
	providers []view.ProviderDebug
	items     []view.ItemPrice
	wanted    view.ItemFilter // filter of the last list of items
	details   map[catalog.Key]view.ItemDetail
	failed    []view.JobItem
	calls     []string
	perRead   int64 // progress of a live job per read
	broken    error // returned by reads of the status and of items, unless nil
}

// pace sets the progress of a live job per read.
func (f *fakeAssay) pace(items int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.perRead = items
}

func (f *fakeAssay) called(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

func (f *fakeAssay) log() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fakeAssay) Status(context.Context) (view.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return view.Status{}, f.broken
	}
	s := view.Status{
		Missing:   view.MissingStatus{Running: true, PendingItems: 14, WaitingItems: 231, OldestSeconds: 96},
		Freshness: view.Freshness{Fresh: 29604, Stale: 476, Unknown: 245, OldestSeconds: 4*86400 + 7200},
	}
	for _, j := range f.jobs {
		if j.Kind != "bulk" {
			continue
		}
		s.Status = view.RunStatus{Running: isLive(j.State), JobID: &j.ID, Kind: &j.Kind, State: &j.State}
		if isLive(j.State) {
			s.Status.EtaSeconds = new(1 + j.PendingItems/400)
		}
		break
	}
	return s, nil
}

func (f *fakeAssay) Jobs(_ context.Context, kind, cursor string, limit int) (view.Page[view.Job], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []view.Job
	for _, j := range f.jobs {
		if kind == "" || j.Kind == kind {
			found = append(found, j)
		}
	}
	return paged(found, cursor, limit)
}

func (f *fakeAssay) Job(_ context.Context, id int64) (view.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.jobs {
		if f.jobs[i].ID == strconv.FormatInt(id, 10) {
			f.advance(&f.jobs[i])
			return f.jobs[i], nil
		}
	}
	return view.Job{}, fault.New(fault.NotFound, "not_found", "There is no run %d.", id)
}

// advance adds progress to a live job.
func (f *fakeAssay) advance(j *view.Job) {
	if !isLive(j.State) || f.perRead == 0 {
		return
	}
	n := min(f.perRead, j.PendingItems)
	j.PendingItems -= n
	j.UpdatedItems += n
	j.ChangedItems += n / 2
	j.Usage.RequestCount++
	j.Usage.ByProvider["sim"]++
	j.State, j.Stage = "running", "estimate"
	if j.PendingItems == 0 {
		end := f.now()
		j.State, j.Stage, j.FinishedAt = "finished", "done", &end
	}
}

func (f *fakeAssay) JobItems(_ context.Context, _ int64, state, cursor string, limit int) (view.Page[view.JobItem], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := slices.Clone(f.failed)
	items = append(items,
		view.JobItem{AppID: 730, MarketHashName: "AK-47 | Redline (Field-Tested)", State: "updated", Attempts: 1, PriceBefore: 31_870_000, PriceAfter: new(money.Micro(32_040_000))},
		view.JobItem{AppID: 730, MarketHashName: "Sticker | Crown (Foil)", State: "skipped", Reason: "noSales", PriceBefore: 1_204_110_000},
		view.JobItem{AppID: 730, MarketHashName: "Souvenir MAG-7 | Bulldozer (Well-Worn)", State: "noQuote", Attempts: 1})
	items = slices.DeleteFunc(items, func(i view.JobItem) bool { return state != "" && i.State != state })
	return paged(items, cursor, limit)
}

func (f *fakeAssay) JobFailures(context.Context, int64) (out []view.FailureReason, others int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := map[string]int{}
	for _, item := range f.failed {
		k, known := at[*item.Error]
		if !known {
			k = len(out)
			at[*item.Error], out = k, append(out, view.FailureReason{Cause: *item.Error})
		}
		out[k].Count++
		out[k].Items = append(out[k].Items, catalog.Key{AppID: item.AppID, Name: item.MarketHashName})
	}
	return out, 5, nil
}

func (f *fakeAssay) ProviderDebug(context.Context) (view.ProvidersDebug, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return view.ProvidersDebug{
		Providers:    slices.Clone(f.providers),
		Unconfigured: []view.Unconfigured{{Provider: "csfloat", Reason: "no key: set CSFLOAT_API_KEY"}, {Provider: "steam", Reason: "not named in MARKET_PRICE_PROVIDERS"}},
	}, nil
}

func (f *fakeAssay) JobDebug(context.Context) (view.JobDebug, error) {
	return view.JobDebug{
		Scheduled: []view.ScheduledRun{{Name: "refresh", At: f.now().Add(2*time.Hour + 11*time.Minute)}},
		Failures: []view.FailureReason{
			{Cause: "pricelist: 503 Service Unavailable", Count: 27, SampleNames: []string{"MP9 | Hot Rod (Factory New)", trapNames[1]}},
			{Cause: "sim: no response within 10 s", Count: 3, SampleNames: []string{"Sealed Graffiti | Rage Mode (Monarch Blue)"}},
		},
		Events: []view.Event{
			{ID: "9", Kind: "budget.low", At: f.now().Add(-time.Minute), Data: []byte(`{"provider":"steam","host":"","budget":"day","left":9,"limit":100}`)},
			{ID: "8", Kind: "provider.quarantined", At: f.now().Add(-time.Hour), Data: []byte(`{"provider":"sim","why":"quarantine","market":"<b>","detail":"half a catalogue"}`)},
			{ID: "7", Kind: "job.finished", At: f.now().Add(-2 * time.Hour), Data: []byte(`{"jobId":"16","totalItems":120,"updatedItems":117}`)},
		},
	}, nil
}

func (f *fakeAssay) Items(_ context.Context, by view.ItemFilter, cursor string, limit int) (view.Page[view.PricedItem], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []view.PricedItem
	for _, i := range f.items {
		held := i.Status == "suspect"
		if i.AppID == by.AppID && strings.Contains(strings.ToLower(i.MarketHashName), strings.ToLower(by.Search)) &&
			(by.Status == "" || i.Status == by.Status) && (!by.Held || held) && i.CurrentPrice >= by.Min && (by.Max == 0 || i.CurrentPrice <= by.Max) {
			item := view.PricedItem{ItemPrice: i, Held: held}
			if i.CurrentPrice > 0 && by.Fields&view.FieldInterval != 0 {
				item.Figures = &view.Figures{Interval: &view.Interval{Low: i.CurrentPrice * 9 / 10, High: i.CurrentPrice * 11 / 10}}
			}
			found = append(found, item)
		}
	}
	if by.Sort == "-price" {
		slices.SortStableFunc(found, func(a, b view.PricedItem) int { return cmp.Compare(b.CurrentPrice, a.CurrentPrice) })
	}
	f.wanted = by
	return paged(found, cursor, limit)
}

func (f *fakeAssay) Item(_ context.Context, key catalog.Key) (view.ItemDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return view.ItemDetail{}, f.broken
	}
	if d, ok := f.details[key]; ok {
		return d, nil
	}
	for _, i := range f.items {
		if i.AppID == key.AppID && i.MarketHashName == key.Name && i.Phase == key.Phase {
			return view.ItemDetail{ItemPrice: i, Currency: "USD"}, nil
		}
	}
	return view.ItemDetail{}, fault.New(fault.NotFound, "unknown_item", "No such item is known.")
}

func (f *fakeAssay) Health(context.Context, bool) (view.Health, error) {
	return view.Health{Status: "ok", Checks: map[string]string{"database": "ok", "schema": "ok", "queue": "ok"}}, nil
}

func (f *fakeAssay) Start(_ context.Context, forced bool, by string) (refresh.Started, error) {
	f.called("start forced=%t by=%s", forced, by)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.jobs) > 0 && isLive(f.jobs[0].State) {
		id, _ := strconv.ParseInt(f.jobs[0].ID, 10, 64)
		return refresh.Started{JobID: id, ForcedIgnored: forced}, nil
	}
	now := f.now()
	f.jobs = slices.Insert(f.jobs, 0, view.Job{
		ID: "43", Kind: "bulk", Forced: forced, State: "running", Stage: "fetch", RequestedBy: by, CreatedAt: now, StartedAt: &now,
		TotalItems: 30325, PendingItems: 30015, SkippedItems: view.Skipped{NoSales: 310}, Usage: view.Usage{ByProvider: map[string]int64{}},
	})
	return refresh.Started{JobID: 43, Started: true}, nil
}

func (f *fakeAssay) DryRun(_ context.Context, forced bool) (view.DryRun, error) {
	f.called("dry-run forced=%t", forced)
	return view.DryRun{
		DryRun: true, Forced: forced, TotalItems: 30325, DueItems: 28811, SkippedItems: view.Skipped{TTL: 1204, NoSales: 310},
		Providers: []view.PlannedCost{{Provider: "sim", Requests: 71, Seconds: 35.5}, {Provider: "pricelist", Requests: 1, Seconds: 0.2}},
		Requests:  72, Seconds: 35.5,
	}, nil
}

func (f *fakeAssay) Cancel(_ context.Context, id int64) error {
	f.called("cancel %d", id)
	return nil
}

func (f *fakeAssay) RetryFailed(_ context.Context, id int64, by string) (refresh.Started, error) {
	f.called("retry %d by=%s", id, by)
	return refresh.Started{JobID: id + 1, Started: true}, nil
}

func (f *fakeAssay) PauseProvider(_ context.Context, provider string) error {
	f.called("pause %s", provider)
	if provider == "unknown" {
		return fault.New(fault.NotFound, "unknown_source", "There is no provider named unknown.")
	}
	return nil
}

func (f *fakeAssay) ResumeProvider(_ context.Context, provider string) error {
	f.called("resume %s", provider)
	return nil
}

func (f *fakeAssay) AcceptProvider(_ context.Context, provider, market string) error {
	f.called("accept %s", strings.TrimSpace(provider+" "+market))
	return nil
}

func (f *fakeAssay) AcceptItem(_ context.Context, key catalog.Key) error {
	f.called("accept item %d %q %q", key.AppID, key.Name, key.Phase)
	return nil
}

// paged returns a page of a list. The cursor is an index.
func paged[T any](all []T, cursor string, limit int) (view.Page[T], error) {
	from, err := strconv.Atoi(cmp.Or(cursor, "0"))
	if err != nil || from < 0 {
		return view.Page[T]{}, fault.New(fault.Invalid, "invalid_cursor", "The cursor is invalid.")
	}
	rest := all[min(from, len(all)):]
	page := view.Page[T]{Items: rest[:min(limit, len(rest))]}
	if limit < len(rest) {
		page.NextCursor = new(strconv.Itoa(from + limit))
	}
	return page, nil
}

// world is a page with fakes.
type world struct {
	clock   *clock
	secrets *fakeSecrets
	limiter *fakeLimiter
	assay   *fakeAssay
	handler http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := newClock()
	w := &world{clock: c, secrets: newSecrets(), limiter: &fakeLimiter{limit: 3, seen: map[netip.Addr]int{}}}
	w.assay = newFakeAssay(c.Now)
	w.handler = New(Deps{
		Jobs: w.assay, Items: w.assay, Providers: w.assay, Health: w.assay, Refresher: w.assay, Credentials: w.secrets, Limiter: w.limiter,
		Version: "0.1.0-test", Currency: "USD", Logger: slog.New(slog.DiscardHandler), Now: c.Now,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	return w
}

// errBroken contains internals that no page may show.
var errBroken = errors.New("disk I/O error at /var/lib/secret/assay.db: SELECT 1")
