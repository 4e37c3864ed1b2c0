package view

import (
	"context"

	"assay/internal/admission"
	"assay/internal/catalog"
)

// Bounded is a Reader whose expensive methods wait for a slot of a Gate. Those that
// find none in time return a fault.Busy.
type Bounded struct {
	*Reader
	gate *admission.Gate
}

// NewBounded bounds a Reader.
func NewBounded(r *Reader, g *admission.Gate) *Bounded { return &Bounded{r, g} }

// admitted calls read once the gate has a slot for it.
func admitted[T any](ctx context.Context, g *admission.Gate, c admission.Class, read func() (T, error)) (T, error) {
	leave, err := g.Enter(ctx, c)
	if err != nil {
		var none T
		return none, err
	}
	defer leave()
	return read()
}

// Items is that of the Reader.
func (b *Bounded) Items(ctx context.Context, f ItemFilter, after string, limit int) (Page[PricedItem], error) {
	return admitted(ctx, b.gate, admission.Search, func() (Page[PricedItem], error) { return b.Reader.Items(ctx, f, after, limit) })
}

// Item is that of the Reader.
func (b *Bounded) Item(ctx context.Context, key catalog.Key) (ItemDetail, error) {
	return admitted(ctx, b.gate, admission.Explanation, func() (ItemDetail, error) { return b.Reader.Item(ctx, key) })
}

// Users is that of the Reader.
func (b *Bounded) Users(ctx context.Context, prefix, after string, limit int) (Page[User], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[User], error) { return b.Reader.Users(ctx, prefix, after, limit) })
}

// Inventory is that of the Reader.
func (b *Bounded) Inventory(ctx context.Context, userID string, app int32, fields Fields, after string, limit int) (Inventory, error) {
	return admitted(ctx, b.gate, admission.Inventory, func() (Inventory, error) { return b.Reader.Inventory(ctx, userID, app, fields, after, limit) })
}

// Jobs is that of the Reader.
func (b *Bounded) Jobs(ctx context.Context, kind, after string, limit int) (Page[Job], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[Job], error) { return b.Reader.Jobs(ctx, kind, after, limit) })
}

// JobItems is that of the Reader.
func (b *Bounded) JobItems(ctx context.Context, id int64, state, after string, limit int) (Page[JobItem], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[JobItem], error) { return b.Reader.JobItems(ctx, id, state, after, limit) })
}

// Listings is that of the Reader.
func (b *Bounded) Listings(ctx context.Context, f ListingFilter, after string, limit int) (Page[Listing], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[Listing], error) { return b.Reader.Listings(ctx, f, after, limit) })
}

// Trades is that of the Reader.
func (b *Bounded) Trades(ctx context.Context, f TradeFilter, after string, limit int) (Page[Trade], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[Trade], error) { return b.Reader.Trades(ctx, f, after, limit) })
}

// WalletEntries is that of the Reader.
func (b *Bounded) WalletEntries(ctx context.Context, userID, currency, after string, limit int) (Page[WalletEntry], error) {
	return admitted(ctx, b.gate, admission.List, func() (Page[WalletEntry], error) {
		return b.Reader.WalletEntries(ctx, userID, currency, after, limit)
	})
}

// JobDebug is that of the Reader.
func (b *Bounded) JobDebug(ctx context.Context) (JobDebug, error) {
	return admitted(ctx, b.gate, admission.List, func() (JobDebug, error) { return b.Reader.JobDebug(ctx) })
}

// ProviderDebug is that of the Reader.
func (b *Bounded) ProviderDebug(ctx context.Context) (ProvidersDebug, error) {
	return admitted(ctx, b.gate, admission.List, func() (ProvidersDebug, error) { return b.Reader.ProviderDebug(ctx) })
}
