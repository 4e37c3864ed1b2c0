package view

import (
	"context"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/store"
)

// Statuses of items without a price that only a lookup tells apart.
const (
	StatusQueued  = "queued"  // waits in the missing-price queue
	StatusUnknown = "unknown" // there is no such item
)

// Lookup answers POST /api/prices/lookup, in the order of what was asked.
type Lookup struct {
	Items    []LookupItem   `json:"items"`
	Currency money.Currency `json:"currency"`
}

// LookupItem is an item with its price, or with why it has none: its status is
// noPrice, queued or unknown then.
type LookupItem struct {
	ItemPrice
	PriceCheckedAt *time.Time `json:"priceCheckedAt"`
}

// Unqueued returns the items that have no price and wait for none.
func (l *Lookup) Unqueued() []catalog.Key {
	var out []catalog.Key
	for i := range l.Items {
		v := &l.Items[i]
		if v.Status == StatusUnknown || v.Status == pricing.NoPrice.String() {
			out = append(out, catalog.Key{AppID: v.AppID, Name: v.MarketHashName, Phase: v.Phase})
		}
	}
	return out
}

// Lookup tells what items are worth, each as often as it is asked for. It
// queues nothing.
func (r *Reader) Lookup(ctx context.Context, keys []catalog.Key) (Lookup, error) {
	byApp := map[int32][]catalog.Key{}
	for _, k := range keys {
		byApp[k.AppID] = append(byApp[k.AppID], k)
	}
	prices := make(map[int32]map[catalog.Key]store.Price, len(byApp))
	for app, wanted := range byApp {
		found, err := r.o.Store.Prices(ctx, app, wanted)
		if err != nil {
			return Lookup{}, err
		}
		prices[app] = found
	}
	now := r.o.Now()
	out := Lookup{Items: make([]LookupItem, len(keys)), Currency: r.o.Currency}
	for i, k := range keys {
		p, known := prices[k.AppID][k]
		out.Items[i] = lookupItem(k, &p, known, now)
	}
	return out, nil
}

func lookupItem(k catalog.Key, p *store.Price, known bool, now time.Time) LookupItem {
	status := currentStatus(p.Amount, p.Status, p.CheckedAt, now).String()
	switch {
	case !known:
		status = StatusUnknown
	case p.Amount <= 0 && p.Queued:
		status = StatusQueued
	}
	return LookupItem{
		ItemPrice: ItemPrice{
			AppID: k.AppID, MarketHashName: k.Name, Phase: k.Phase,
			CurrentPrice: p.Amount, Status: status, PriceUpdatedAt: when(p.UpdatedAt),
		},
		PriceCheckedAt: when(p.CheckedAt),
	}
}
