package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"assay/internal/view"
)

// providerListCmd lists the providers of the running server.
type providerListCmd struct{}

func (*providerListCmd) examples() []example {
	return []example{
		{"provider list", "list providers, their markets, budgets and last errors"},
		{"provider list --json", "print all data about the providers as JSON"},
	}
}

func (c *providerListCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, providersRequest(), func(w io.Writer, debug *view.ProvidersDebug) { writeProviders(w, debug, s.Now()) })
}

func writeProviders(w io.Writer, debug *view.ProvidersDebug, now time.Time) {
	rows := [][]string{{"PROVIDER", "MARKETS", "HEALTH", "STATE", "LAST SUCCESS", "REQUESTS LEFT", "LAST ERROR"}}
	for i := range debug.Providers {
		p := &debug.Providers[i]
		left := "unlimited"
		if p.Budget.Left != nil && p.Budget.Limit > 0 {
			left = count(*p.Budget.Left) + " of " + count(p.Budget.Limit)
		}
		rows = append(rows, []string{
			cell(p.Provider), fmt.Sprint(len(p.Markets)), string(p.Health), providerState(p, now), moment(p.LastSuccess), left, dashed(cell(value(p.LastError))),
		})
	}
	for _, p := range debug.Unconfigured {
		rows = append(rows, []string{cell(p.Provider), "-", "-", "not configured", "-", "-", dashed(cell(p.Reason))})
	}
	table(w, rows)
	for i := range debug.Providers {
		writeFailingFiles(w, &debug.Providers[i])
		for _, m := range debug.Providers[i].Markets {
			if m.Quarantine != nil {
				_, _ = fmt.Fprintf(w, "%s/%s has been quarantined since %s: %s\n",
					printable(debug.Providers[i].Provider), printable(m.Market), moment(m.QuarantinedSince), printable(*m.Quarantine))
			}
		}
	}
}

// writeFailingFiles lists the files whose last fetch failed.
func writeFailingFiles(w io.Writer, p *view.ProviderDebug) {
	for _, f := range p.Files {
		if f.Failures > 0 {
			_, _ = fmt.Fprintf(w, "%s/%s is %s: %s consecutive failures, the last at %s: %s\n",
				printable(p.Provider), printable(f.File), f.Health, count(f.Failures), moment(f.LastErrorAt), printable(value(f.LastError)))
		}
	}
}

// providerState returns why requests to a provider are stopped. It returns "active" if they
// are not.
func providerState(p *view.ProviderDebug, now time.Time) string {
	switch {
	case p.Paused:
		return "paused"
	case p.BlockedUntil != nil && p.BlockedUntil.After(now):
		return "waiting until " + p.BlockedUntil.UTC().Format(time.TimeOnly)
	case p.Breaker == "open":
		return "circuit breaker open"
	}
	for _, m := range p.Markets {
		if m.Quarantine != nil {
			return "quarantined"
		}
	}
	return "active"
}

// providerPauseCmd pauses requests to a provider.
type providerPauseCmd struct {
	Provider string `arg:"" complete:"provider" help:"Name of the provider."`
}

func (*providerPauseCmd) examples() []example {
	return []example{{"provider pause skinport", "stop requests to skinport until it is resumed; its prices are kept"}}
}

func (c *providerPauseCmd) Run(ctx context.Context, s *session) error {
	return steerProvider(ctx, s, c.Provider, "pause", nil, c.Provider+" is paused")
}

// providerResumeCmd resumes requests to a provider.
type providerResumeCmd struct {
	Provider string `arg:"" complete:"provider" help:"Name of the provider."`
}

func (*providerResumeCmd) examples() []example {
	return []example{{"provider resume skinport", "send requests again; also discards the reported quota"}}
}

func (c *providerResumeCmd) Run(ctx context.Context, s *session) error {
	return steerProvider(ctx, s, c.Provider, "resume", nil, c.Provider+" is resumed")
}

// providerAcceptCmd ends a quarantine.
type providerAcceptCmd struct {
	Provider string `arg:"" complete:"provider" help:"Name of the provider."`
	Market   string `complete:"market" help:"Only this market. Default: all quarantined markets of the provider."`
}

func (*providerAcceptCmd) examples() []example {
	return []example{
		{"provider accept pricelist", "end the quarantine of all its markets; the next run uses their responses"},
		{"provider accept pricelist --market shop", "end the quarantine of one market"},
	}
}

func (c *providerAcceptCmd) Run(ctx context.Context, s *session) error {
	what := "every market of " + c.Provider
	if c.Market != "" {
		what = c.Provider + "/" + c.Market
	}
	return steerProvider(ctx, s, c.Provider, "accept", filter("market", c.Market), "the quarantine of "+what+" has ended")
}

// steered is the --json result of the pause, resume and accept commands.
type steered struct {
	Provider string `json:"provider"`
	Action   string `json:"action"`
}

// steerProvider sends an action for a provider to the server and prints done.
func steerProvider(ctx context.Context, s *session, name, action string, q url.Values, done string) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	r := providerAction(name, action, q)
	if err := api.do(ctx, r, nil); err != nil {
		return err
	}
	return s.out.result(steered{Provider: name, Action: action}, func(w io.Writer) { _, _ = fmt.Fprintln(w, printable(done)) })
}
