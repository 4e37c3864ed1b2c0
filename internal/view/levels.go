package view

import (
	"context"
	"fmt"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// MarketLevel is the learned state of a configured market in one game.
type MarketLevel struct {
	Provider, Market string
	Title            string // name of the market for people
	AppID            int32
	Level            money.Micro // factor against the other markets, in millionths; 0: not learned yet
	Late             bool        // the market repeats another one or does not move, so it is not used
	Dispersion       money.Micro // share of names that move differently from their class, in millionths; -1: not compared yet
	DispersionLimit  money.Micro // responses with a greater share are quarantined
	LastGood         time.Time   // fetch time of the newest valid response; zero: none
	Names            int         // names in that response; 0: unknown, or the provider is requested by name
}

// MarketLevels returns the learned state of the configured markets, from the newest level set
// of each game.
func (r *ProviderReader) MarketLevels(ctx context.Context) ([]MarketLevel, error) {
	notes, err := refresh.MarketValidations(ctx, r.o.Store)
	if err != nil {
		return nil, fmt.Errorf("read validation state: %w", err)
	}
	names, err := Markets(ctx, r.o.Store)
	if err != nil {
		return nil, err
	}
	configured := r.configured()
	now, sets := r.o.Now(), map[int32]*pricing.Set{}
	var out []MarketLevel
	for i := range notes {
		n := &notes[i]
		name := names[n.MarketID]
		if !configured[refresh.MarketName{Provider: name.Provider, Key: name.Key}] {
			continue
		}
		set, read := sets[n.AppID]
		if !read {
			if set, err = refresh.LevelSet(ctx, r.o.Store, n.AppID); err != nil {
				return nil, fmt.Errorf("read levels of game %d: %w", n.AppID, err)
			}
			sets[n.AppID] = set
		}
		l := MarketLevel{Provider: name.Provider, Market: name.Key, Title: name.Title, AppID: n.AppID, LastGood: n.LastGood, Names: n.Names}
		l.Dispersion, l.DispersionLimit = n.State.Dispersion(now, n.LastGood, n.Names)
		if set != nil {
			m := set.Market(n.MarketID)
			if l.Late = m.Late; m.Known {
				l.Level = pricing.Exp(m.Level)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// configured returns the markets of all providers, without titles.
func (r *ProviderReader) configured() map[refresh.MarketName]bool {
	out := map[refresh.MarketName]bool{}
	for _, s := range r.o.Providers {
		d := s.Describe()
		for _, m := range d.Markets {
			out[refresh.MarketName{Provider: d.Name, Key: m.Key}] = true
		}
	}
	return out
}

// Quarantines returns the quarantined responses of a provider, compared with the last valid ones.
// Their reasons have no prefix.
func (r *ProviderReader) Quarantines(ctx context.Context, name string) ([]refresh.Quarantine, error) {
	found, err := refresh.Quarantines(ctx, r.o.Store, name)
	if err != nil {
		return nil, fmt.Errorf("read quarantines of %s: %w", name, err)
	}
	for i := range found {
		found[i].Reason = quarantineReason(name, found[i].Market, found[i].Reason)
	}
	return found, nil
}
