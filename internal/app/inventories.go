package app

import (
	"context"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/user"
)

// buildInventories creates the services for pushed inventories and for inventories from
// Steam.
func (a *App) buildInventories(so ProviderOptions) {
	a.inventories = &inventory.Service{
		InTx:        a.store.InTx,
		Queued:      func() { a.work.Wake(refresh.WorkMissing) },
		Inspectable: func() { a.work.Wake(inventory.WorkInspect) },
		Synced:      market.InventoryTouched,
	}
	client, base := inventoryClient(so)
	a.steam = client
	puller := &steaminv.Puller{BaseURL: base, Client: client, Now: a.now}
	a.syncs = syncs.New(a.inventories, steaminv.Options{SteamID: a.steamID, Pull: puller.Pull, Held: puller.Held, Logger: a.log})
}

// steamID returns the Steam id of a user.
func (a *App) steamID(ctx context.Context, userID string) (string, error) {
	_, known, err := user.Key(ctx, a.store, userID)
	if err != nil {
		return "", err
	}
	if !known {
		return "", user.NotFound()
	}
	stored, err := user.Read(ctx, a.store, userID)
	if err == nil && stored.SteamID == "" {
		err = fault.New(fault.Unprocessable, "steam_id_missing", "The user has no steamId. Set it with PUT /api/users/{userId}, or push the inventory as a JSON body.")
	}
	return stored.SteamID, err
}

// inventoryClient returns the client for inventories and the base address. The client
// shares the budget of Steam's host and has an additional, lower rate limit.
func inventoryClient(so ProviderOptions) (*provider.Client, string) {
	if shared := so.Allowance; shared != nil {
		so.Allowance = func(p string, host provider.Host) provider.Allowance {
			pace := provider.Host{Key: host.Key + "/inventory", Limit: provider.Limit{Requests: 1, Per: so.Config.SteamPace}}
			return paced{Allowance: shared(p, host), pace: shared(p, pace)}
		}
	}
	return SteamClient(so, steaminv.Tune)
}

// paced is an allowance with an additional rate limit.
type paced struct {
	provider.Allowance
	pace provider.Allowance
}

// Take implements provider.Allowance. It takes from the pace first. If the shared allowance
// then refuses, the pace has counted one request too many. That count expires soon.
func (p paced) Take(ctx context.Context) (provider.Refusal, error) {
	if r, err := p.pace.Take(ctx); err != nil || r.Wait > 0 {
		return r, err
	}
	return p.Allowance.Take(ctx)
}

// Down implements provider.Allowance. It does nothing, because a failure of inventories
// does not affect the health of the price provider.
func (paced) Down(context.Context, string) error { return nil }

// Up implements provider.Allowance. See Down.
func (paced) Up(context.Context) error { return nil }
