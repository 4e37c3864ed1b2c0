package app

import (
	"context"
	"time"

	"assay/internal/provider/allowance"
	"assay/internal/provider/steam"
)

// samplesEvery is the interval at which counts of requests are stored. If the process is killed,
// the counts of the last interval are lost.
const samplesEvery = 10 * time.Second

// sampled lists the clients whose requests are counted for statistics.
func (a *App) sampled() []allowance.Sampled {
	host := hostOf(a.cfg, steam.Name, steam.BaseURL, steam.Host()).host
	all := []allowance.Sampled{{Provider: steam.Name, Host: host.Key, Client: a.steam}}
	for name, clients := range a.providers.Clients {
		for host, client := range clients {
			all = append(all, allowance.Sampled{Provider: name, Host: host, Client: client})
		}
	}
	return all
}

// storeSamples stores the counts of requests until ctx ends.
func (a *App) storeSamples(ctx context.Context) {
	if a.readOnly {
		return
	}
	t := time.NewTicker(samplesEvery)
	defer t.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := allowance.StoreSamples(ctx, a.store, a.sampled())
		if err != nil && !failing && ctx.Err() == nil {
			a.log.Warn("counts of requests not stored; retrying", "error", err)
		}
		failing = err != nil
	}
}
