package app

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/webhook"
)

// newRegistry returns the metrics of this process. The API adds the metrics of its requests. The
// collector reads all figures at each scrape.
func newRegistry(readers *view.Readers, counts *db.DB, syncs *syncs.Service, pricesOnly bool) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{readers: readers, store: counts, pricesOnly: pricesOnly, descs: describe()},
	)
	registry.MustRegister(syncs.Collectors()...)
	return registry
}

const collectTimeout = 10 * time.Second

// collector reads the views at each scrape. Its labels are configured providers, configured
// markets and games, so the number of time series is limited.
type collector struct {
	readers *view.Readers
	store   *db.DB
	// pricesOnly omits the figures of the market and the wallet.
	pricesOnly bool
	descs      descriptions
}

type descriptions struct {
	ledger, ledgerFailures, ledgerEntries, ledgerVerified *prometheus.Desc
	running, outcome, items, missing, freshness, oldest   *prometheus.Desc
	responses, blocked, quotes, quarantined               *prometheus.Desc
	limit, used, left, low, events                        *prometheus.Desc
	lastFetch, lastSuccess, latency, jobRequests          *prometheus.Desc
	postings, trades, overdue                             *prometheus.Desc
	webhooks, deliveries                                  *prometheus.Desc
	health, fileFailures, checks                          *prometheus.Desc
	prices, held, level, late, dispersion, dispersionMost *prometheus.Desc

	all []*prometheus.Desc
}

func describe() descriptions {
	var all []*prometheus.Desc
	d := func(name, help string, labels ...string) *prometheus.Desc {
		all = append(all, prometheus.NewDesc("assay_"+name, help, labels, nil))
		return all[len(all)-1]
	}
	out := descriptions{
		running:        d("refresh_running", "1 while a bulk refresh is queued or running."),
		outcome:        d("refresh_outcome", "1 for the outcome of the last bulk refresh: complete, partial or failed. Absent before the first refresh.", "outcome"),
		items:          d("refresh_items", "Items of the last bulk refresh by state: pending, updated, noQuote, failed, skippedTTL, skippedNoSales, skippedBudget, skippedPaused or skippedBackoff.", "state"),
		jobRequests:    d("refresh_requests", "HTTP requests of the last bulk refresh, retries included.", "provider"),
		missing:        d("missing_prices", "Entries of the missing-price queue: due (or in progress), or waiting for a retry.", "state"),
		freshness:      d("items_in_scope", "Items in scope by the age of their price: fresh (up to 24 h), stale or unknown.", "freshness"),
		oldest:         d("oldest_price_seconds", "Seconds since the oldest price in scope was last confirmed."),
		responses:      d("provider_responses_total", "Responses of a provider's host since the start by status. Status 0 counts requests without a response. The provider steam_inventory pulls inventories.", "provider", "host", "status"),
		blocked:        d("provider_blocked", "1 while no requests are sent to a provider's host because of an open breaker, a retry-after or a pause. The host is empty if a provider has only one host.", "provider", "host", "why"),
		limit:          d("provider_budget_limit", "Requests that a provider's host allows to all instances together, by budget: limit, day, month or reported quota. Absent for a budget that does not exist.", "provider", "host", "budget"),
		used:           d("provider_budget_used", "Requests that currently count against a budget of a provider's host.", "provider", "host", "budget"),
		left:           d("provider_budget_left", "Remaining requests in a budget of a provider's host.", "provider", "host", "budget"),
		low:            d("provider_budget_low", "1 while less than a tenth of any budget of a provider's host is left and that budget will run out.", "provider", "host"),
		events:         d("events_total", "Events that this process wrote since its start.", "kind"),
		webhooks:       d("webhooks", "Webhooks by state: healthy, failing (the last attempt failed, or disabled because of failures) or disabled by an operator.", "state"),
		deliveries:     d("webhook_attempts_total", "Attempts of this process since its start to send webhook messages, by resulting state: delivered, retrying, failed (abandoned) or lost (expired).", "state"),
		latency:        d("provider_latency_seconds", "Duration of requests to a provider's host since the start.", "provider", "host"),
		lastSuccess:    d("provider_last_success_timestamp_seconds", "Time of the last successful response of a provider; 0: never.", "provider"),
		health:         d("provider_health", "1 for the health of a provider, from its last fetches: unknown, healthy, degraded or down.", "provider", "health"),
		fileFailures:   d("provider_file_failures", "Consecutive failed fetches of a provider's file, such as a price list.", "provider", "file"),
		lastFetch:      d("market_last_fetch_timestamp_seconds", "Time of the last fetch of a market.", "provider", "market"),
		quotes:         d("market_quotes", "Quotes in the last response of a market.", "provider", "market"),
		ledger:         d("ledger_verification", "1 for the result of the last verification of the whole wallet ledger: ok, failed or incomplete. Absent before the first verification.", "status"),
		ledgerFailures: d("ledger_failures", "Failures in the last verification of the whole wallet ledger."),
		ledgerEntries:  d("ledger_entries", "Entries of the wallet ledger at the last verification."),
		ledgerVerified: d("ledger_verified_timestamp_seconds", "Time of the last verification of the whole wallet ledger."),
		postings:       d("ledger_postings_total", "Transactions that this process posted to the wallet ledger since its start.", "kind"),
		trades:         d("trades_open", "Trades that are neither settled nor reversed, by state: pending or completed.", "state"),
		overdue:        d("trades_overdue", "Open trades that were reported as overdue."),
		prices:         d("prices", "Known items of all games by the current status of their price.", "status"),
		held:           d("prices_held", "Items with a suspicious new price that waits for confirmation."),
		level:          d("market_level", "Usual level of a market's prices relative to the other markets, as a factor. Absent until it is learned.", "provider", "market", "app"),
		late:           d("market_late", "1 while a market's prices are not used because they copy another market or do not change.", "provider", "market", "app"),
		dispersion:     d("market_dispersion", "Share of names in a market's newest compared response that moved by more than 2x relative to their class. Absent before the second response.", "provider", "market", "app"),
		dispersionMost: d("market_dispersion_limit", "Dispersion above which a market's response is refused.", "provider", "market", "app"),
		checks:         d("health", "1 for each check of /api/health (database, schema, queue) that passes, else 0.", "check"),
		quarantined:    d("market_quarantined", "1 while a market is in quarantine.", "provider", "market"),
	}
	out.all = all
	return out
}

// Describe implements prometheus.Collector. It reads no figures: they include the prices of all
// items, which would then be in memory from the start.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It omits figures that cannot be read. The health
// check reports the reason.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	counts := event.Counts(c.store)
	for _, kind := range event.Kinds() {
		ch <- prometheus.MustNewConstMetric(c.descs.events, prometheus.CounterValue, float64(counts[kind]), string(kind))
	}
	c.collectWebhooks(ctx, ch)
	if h, err := c.readers.Health.Health(ctx, false); err == nil {
		c.collectHealth(ch, h)
	}
	if s, err := c.readers.Jobs.Status(ctx); err == nil {
		c.collectStatus(ch, s)
	}
	if last, err := c.readers.Jobs.LastOutcome(ctx); err == nil && last != "" {
		for _, o := range []refresh.JobOutcome{refresh.JobComplete, refresh.JobPartial, refresh.JobFailed} {
			gauge(ch, c.descs.outcome, flag(o == last), string(o))
		}
	}
	c.collectPrices(ctx, ch)
	if !c.pricesOnly {
		c.collectMarket(ctx, ch)
		c.collectLedger(ctx, ch)
	}
	if p, err := c.readers.Providers.ReadProviders(ctx); err == nil {
		for _, s := range p.Providers {
			c.collectProvider(ch, s)
		}
		c.collectHost(ch, pulls, p.Inventories.HostDebug)
	}
}

func (c *collector) collectWebhooks(ctx context.Context, ch chan<- prometheus.Metric) {
	attempts := webhook.Counts(c.store)
	for _, state := range []string{webhook.Delivered, webhook.Retrying, webhook.Failed, webhook.Lost} {
		ch <- prometheus.MustNewConstMetric(c.descs.deliveries, prometheus.CounterValue, float64(attempts[state]), state)
	}
	if states, err := webhook.States(ctx, c.store); err == nil {
		for state, n := range states {
			ch <- prometheus.MustNewConstMetric(c.descs.webhooks, prometheus.GaugeValue, float64(n), state)
		}
	}
}

func (c *collector) collectHealth(ch chan<- prometheus.Metric, h view.Health) {
	for check, result := range h.Checks {
		gauge(ch, c.descs.checks, flag(result == "ok"), check)
	}
}

// collectPrices collects the status of prices, and the levels of markets.
func (c *collector) collectPrices(ctx context.Context, ch chan<- prometheus.Metric) {
	d := c.descs
	if n, err := c.readers.Items.PriceCounts(ctx); err == nil {
		for status, count := range n.ByStatus {
			gauge(ch, d.prices, float64(count), status)
		}
		gauge(ch, d.held, float64(n.Held))
	}
	levels, err := c.readers.Providers.MarketLevels(ctx)
	if err != nil {
		return
	}
	const scale = float64(money.Scale)
	for _, l := range levels {
		labels := []string{l.Provider, l.Market, strconv.Itoa(int(l.AppID))}
		gauge(ch, d.late, flag(l.Late), labels...)
		if l.Level > 0 {
			gauge(ch, d.level, float64(l.Level)/scale, labels...)
		}
		if l.Dispersion >= 0 {
			gauge(ch, d.dispersion, float64(l.Dispersion)/scale, labels...)
		}
		gauge(ch, d.dispersionMost, float64(l.DispersionLimit)/scale, labels...)
	}
}

// pulls is the provider label of inventory pulls from Steam.
const pulls = "steam_inventory"

func (c *collector) collectMarket(ctx context.Context, ch chan<- prometheus.Metric) {
	posted := wallet.PostingCounts(c.store)
	for _, kind := range wallet.Kinds() {
		ch <- prometheus.MustNewConstMetric(c.descs.postings, prometheus.CounterValue, float64(posted[kind]), string(kind))
	}
	if n, err := market.ReadOpenTrades(ctx, c.store); err == nil {
		gauge(ch, c.descs.trades, float64(n.Pending), "pending")
		gauge(ch, c.descs.trades, float64(n.Completed), "completed")
		gauge(ch, c.descs.overdue, float64(n.Overdue))
	}
}

func (c *collector) collectLedger(ctx context.Context, ch chan<- prometheus.Metric) {
	v, err := c.readers.Health.LedgerVerification(ctx)
	if err != nil || v == nil {
		return
	}
	for _, status := range []audit.Status{audit.OK, audit.Failed, audit.Incomplete} {
		is := 0.0
		if v.Status == string(status) {
			is = 1
		}
		gauge(ch, c.descs.ledger, is, string(status))
	}
	gauge(ch, c.descs.ledgerFailures, float64(v.FailureCount))
	gauge(ch, c.descs.ledgerEntries, float64(v.Entries))
	gauge(ch, c.descs.ledgerVerified, float64(v.VerifiedAt.Unix()))
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c *collector) collectStatus(ch chan<- prometheus.Metric, s view.Status) {
	d := c.descs
	gauge(ch, d.running, flag(s.Status.Running))
	for state, n := range map[string]int64{
		"pending": s.PendingItems, "updated": s.UpdatedItems, "noQuote": s.NoQuoteItems, "failed": s.FailedItems,
		"skippedTTL": s.SkippedItems.TTL, "skippedNoSales": s.SkippedItems.NoSales, "skippedBudget": s.SkippedItems.Budget,
		"skippedPaused": s.SkippedItems.Paused, "skippedBackoff": s.SkippedItems.Backoff,
	} {
		gauge(ch, d.items, float64(n), state)
	}
	for provider, n := range s.Usage.ByProvider {
		gauge(ch, d.jobRequests, float64(n), provider)
	}
	gauge(ch, d.missing, float64(s.Missing.PendingItems), "due")
	gauge(ch, d.missing, float64(s.Missing.WaitingItems), "waiting")
	gauge(ch, d.freshness, float64(s.Freshness.Fresh), "fresh")
	gauge(ch, d.freshness, float64(s.Freshness.Stale), "stale")
	gauge(ch, d.freshness, float64(s.Freshness.Unknown), "unknown")
	gauge(ch, d.oldest, float64(s.Freshness.OldestSeconds))
}

func (c *collector) collectProvider(ch chan<- prometheus.Metric, s view.ProviderDebug) {
	d := c.descs
	gauge(ch, d.blocked, flag(s.Paused), s.Provider, "", "paused")
	for _, h := range s.Hosts {
		c.collectHost(ch, s.Provider, h)
	}
	lastSuccess := 0.0 // never; reported so that an alert can fire
	if s.LastSuccess != nil {
		lastSuccess = float64(s.LastSuccess.Unix())
	}
	gauge(ch, d.lastSuccess, lastSuccess, s.Provider)
	for _, h := range provider.Healths() {
		gauge(ch, d.health, flag(s.Health == h), s.Provider, string(h))
	}
	for _, f := range s.Files {
		gauge(ch, d.fileFailures, float64(f.Failures), s.Provider, f.File)
	}
	for _, m := range s.Markets {
		if m.LastFetchedAt != nil {
			gauge(ch, d.lastFetch, float64(m.LastFetchedAt.Unix()), s.Provider, m.Market)
		}
		gauge(ch, d.quotes, float64(m.Quotes), s.Provider, m.Market)
		gauge(ch, d.quarantined, flag(m.Quarantine != nil), s.Provider, m.Market)
	}
}

func (c *collector) collectHost(ch chan<- prometheus.Metric, p string, h view.HostDebug) {
	d := c.descs
	for status, n := range h.ResponsesByStatus {
		ch <- prometheus.MustNewConstMetric(d.responses, prometheus.CounterValue, float64(n), p, h.Host, status)
	}
	gauge(ch, d.blocked, flag(h.Breaker == "open"), p, h.Host, "breaker")
	gauge(ch, d.blocked, flag(h.BlockedUntil != nil), p, h.Host, "retryAfter")
	c.collectBudget(ch, p, h.Host, h.Budget)
	buckets := map[float64]uint64{}
	for i, bound := range provider.LatencyBounds() {
		buckets[bound.Seconds()] = h.Took.Buckets[i]
	}
	ch <- prometheus.MustNewConstHistogram(d.latency, h.Took.Count, h.Took.Sum.Seconds(), buckets, p, h.Host)
}

// collectBudget collects the parts of a budget. Their labels are limit, day, month and
// reported.
func (c *collector) collectBudget(ch chan<- prometheus.Metric, provider, host string, b view.Budget) {
	d := c.descs
	part := func(budget string, limit, used, left int64) {
		gauge(ch, d.limit, float64(limit), provider, host, budget)
		gauge(ch, d.used, float64(used), provider, host, budget)
		gauge(ch, d.left, float64(left), provider, host, budget)
	}
	if b.Left != nil {
		part("limit", b.Limit, b.Used, *b.Left)
	}
	for _, q := range b.Quotas {
		part(q.Period, q.Limit, q.Used, q.Left)
	}
	switch t := b.Reported; {
	case t == nil:
	case t.Limit != nil:
		part("reported", *t.Limit, *t.Limit-t.Left, t.Left)
	default:
		gauge(ch, d.left, float64(t.Left), provider, host, "reported")
	}
	gauge(ch, d.low, flag(b.Low), provider, host)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
