package app

import (
	"context"
	"log/slog"
	"time"

	"assay/internal/db"
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
func storeSamples(ctx context.Context, s *db.DB, clients []allowance.Sampled, log *slog.Logger) {
	t := time.NewTicker(samplesEvery)
	defer t.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := allowance.StoreSamples(ctx, s, clients)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("counts of requests not stored; retrying", "error", err)
		}
		failing = err != nil
	}
}
