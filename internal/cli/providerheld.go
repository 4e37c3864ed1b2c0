package cli

import (
	"context"
	"time"

	"assay/internal/provider"
	"assay/internal/view"
)

// debugOf returns the running server's report about a provider. It returns nil if no server
// runs or the provider is not configured there.
func (c *client) debugOf(ctx context.Context, provider string) *view.ProviderDebug {
	r := providersRequest()
	r.timeout = debugPatience
	debug, err := call[view.ProvidersDebug](ctx, c, r)
	if err != nil {
		return nil
	}
	for i := range debug.Providers {
		if debug.Providers[i].Provider == provider {
			return &debug.Providers[i]
		}
	}
	return nil
}

// debugPatience is the time limit of the request, because the server may not be running.
const debugPatience = 3 * time.Second

// held is an allowance that counts no requests. It only refuses requests until the budget and the
// retry-after that a running server reported allow them.
type held struct {
	now   func() time.Time
	kind  provider.Kind
	until time.Time // zero: requests are allowed
}

// heldHost returns the allowance of a host, from the server's report about its provider.
func heldHost(d *view.ProviderDebug, host string, now func() time.Time) held {
	h := held{now: now}
	for i := range d.Hosts {
		if d.Hosts[i].Host != host {
			continue
		}
		b := &d.Hosts[i].Budget
		if b.Left != nil && *b.Left == 0 && b.Limit > 0 && b.ResetsAt != nil {
			h.wait(provider.KindBudget, *b.ResetsAt)
		}
		for _, q := range b.Quotas {
			if q.Left == 0 {
				h.wait(provider.KindBudget, q.ResetsAt)
			}
		}
		if b.Reported != nil && b.Reported.Left == 0 {
			h.wait(provider.KindBudget, b.Reported.ResetsAt)
		}
		if until := d.Hosts[i].BlockedUntil; until != nil {
			h.wait(provider.KindRateLimited, *until)
		}
	}
	return h
}

func (h *held) wait(kind provider.Kind, until time.Time) {
	if until.After(h.until) {
		h.kind, h.until = kind, until
	}
}

// Take implements provider.Allowance.
func (h held) Take(context.Context) (provider.Refusal, error) {
	wait := h.until.Sub(h.now())
	if wait <= 0 {
		return provider.Refusal{}, nil
	}
	return provider.Refusal{Wait: wait, Kind: h.kind}, nil
}

// StoreRetryAfter implements provider.Allowance.
func (held) StoreRetryAfter(_ context.Context, o provider.RetryAfter) (time.Duration, error) {
	return o.Wait, nil
}

// StoreReported implements provider.Allowance.
func (held) StoreReported(context.Context, provider.Rate) error { return nil }

// Down implements provider.Allowance.
func (held) Down(context.Context, string) error { return nil }

// Up implements provider.Allowance.
func (held) Up(context.Context) error { return nil }
