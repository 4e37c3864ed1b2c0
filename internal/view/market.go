package view

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/user"
)

// Listing is an asset offered for sale. Prices are integers in minor units.
type Listing struct {
	ID             string         `json:"id"`
	UserID         string         `json:"userId"` // seller
	AppID          int32          `json:"appId"`
	ContextID      string         `json:"contextId"`
	AssetID        string         `json:"assetId"`
	MarketHashName string         `json:"marketHashName"`
	Phase          string         `json:"phase"`
	Amount         int64          `json:"amount"`
	Price          int64          `json:"price"`
	Currency       money.Currency `json:"currency"`
	State          string         `json:"state"` // active, reserved, sold, cancelled or expired
	CreatedAt      time.Time      `json:"createdAt"`
	EndedAt        *time.Time     `json:"endedAt"`
	TradeID        *string        `json:"tradeId"` // null until sold
}

// PriceCheck is the price that a new listing was compared with: the estimated price of
// one unit of the item, in the base currency. An item without a price is queued.
type PriceCheck struct {
	Status       string         `json:"status"` // known or queued
	Value        *money.Micro   `json:"value"`
	ValueDecimal *money.Decimal `json:"valueDecimal"`
	Currency     money.Currency `json:"currency"`
	CheckedAt    *time.Time     `json:"checkedAt"`
	AgeSeconds   *int64         `json:"ageSeconds"`
}

// NewListing is the response to creating a listing.
type NewListing struct {
	Listing    Listing    `json:"listing"`
	PriceCheck PriceCheck `json:"priceCheck"`
}

// Offered is the result of creating one listing in a batch.
type Offered struct {
	AssetID    string      `json:"assetId"`
	Status     int         `json:"status"` // HTTP status that a single request would get: 201, or the status of the error
	Listing    *Listing    `json:"listing"`
	PriceCheck *PriceCheck `json:"priceCheck"`
	Error      *Refusal    `json:"error"`
}

// Withdrawn is the result of one cancellation in a batch.
type Withdrawn struct {
	ID      string   `json:"id"`
	Status  int      `json:"status"` // HTTP status that a single request would get: 200, or the status of the error
	Listing *Listing `json:"listing"`
	Error   *Refusal `json:"error"`
}

// Refusal is the reason why one request of a batch was refused.
type Refusal struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Trade is a purchase of an asset. Amounts of money are integers in minor units.
type Trade struct {
	ID              string         `json:"id"`
	ListingID       string         `json:"listingId"`
	SellerID        string         `json:"sellerId"`
	BuyerID         string         `json:"buyerId"`
	AppID           int32          `json:"appId"`
	ContextID       string         `json:"contextId"`
	AssetID         string         `json:"assetId"` // ID in the seller's inventory
	MarketHashName  string         `json:"marketHashName"`
	Phase           string         `json:"phase"`
	Amount          int64          `json:"amount"`
	Price           int64          `json:"price"`
	Fee             int64          `json:"fee"`
	Net             int64          `json:"net"`
	Currency        money.Currency `json:"currency"`
	FeeRule         string         `json:"feeRule"`
	FeeVersion      int64          `json:"feeVersion"`
	PaymentMethod   *string        `json:"paymentMethod"` // null: not given
	Country         *string        `json:"country"`       // null: not given
	TransactionID   string         `json:"transactionId"` // wallet transaction
	State           string         `json:"state"`         // pending, completed, reversed or settled
	CreatedAt       time.Time      `json:"createdAt"`
	CompletedAt     *time.Time     `json:"completedAt"`
	ReversibleUntil *time.Time     `json:"reversibleUntil"`
	SettlesAt       *time.Time     `json:"settlesAt"` // end of the hold on the seller's credit
	SettledAt       *time.Time     `json:"settledAt"`
	ReversedAt      *time.Time     `json:"reversedAt"`
}

// ListingFilter selects listings. Empty fields do not filter.
type ListingFilter struct {
	UserID             string
	AppID              int32
	Name               string
	Phase              *string
	State              string
	Currency           string
	MinPrice, MaxPrice int64
	From, To           time.Time // time of creation; To is exclusive
}

// TradeFilter selects trades. Empty fields do not filter.
type TradeFilter struct {
	UserID   string // seller or buyer
	AppID    int32
	State    string
	From, To time.Time // time of creation; To is exclusive
}

// readCreated reads a cursor of a list that can be filtered by time of creation. With this
// filter the list is sorted by time and has a separate cursor format.
func readCreated(after, list string, from, to time.Time, before *int64) (market.Period, error) {
	p := market.Period{From: from, To: to}
	if from.IsZero() && to.IsZero() {
		return p, readCursor(after, list, before)
	}
	if after == "" {
		return p, nil
	}
	var at int64 // in microseconds
	err := readCursor(after, list+" created", &at, before)
	p.To, p.Through = time.UnixMicro(at).UTC(), true
	if err == nil && !to.IsZero() && !p.To.Before(to) {
		p.To, p.Through = to, false // the cursor is from a request with a longer period
	}
	return p, err
}

// createdCursor returns a cursor for readCreated.
func createdCursor(list string, from, to, created time.Time, id int64) *string {
	if from.IsZero() && to.IsZero() {
		return cursor(list, id)
	}
	return cursor(list+" created", created.UnixMicro(), id)
}

// ListingOf converts a listing to the type that the API returns.
func ListingOf(l *market.Listing) Listing {
	return Listing{
		ID: id(l.ID), UserID: l.Seller, AppID: l.AppID, ContextID: l.ContextID, AssetID: l.AssetID,
		MarketHashName: l.Item.Name, Phase: l.Item.Phase, Amount: l.Amount, Price: l.Price, Currency: l.Currency,
		State: string(l.State), CreatedAt: l.CreatedAt, EndedAt: when(l.EndedAt), TradeID: idOrNil(l.TradeID),
	}
}

// OfferedOf converts the result of creating a listing in a batch.
func OfferedOf(c *market.Created, base money.Currency, now time.Time) Offered {
	if c.Refused != nil {
		return Offered{
			AssetID: c.Offer.AssetID, Status: c.Refused.Kind.Status(),
			Error: &Refusal{Code: c.Refused.Code, Detail: c.Refused.Detail},
		}
	}
	listing, check := ListingOf(&c.Listing), PriceCheck{Status: "queued", Currency: base}
	if c.Price > 0 {
		age := seconds(now.Sub(c.CheckedAt))
		check = PriceCheck{Status: "known", Currency: base, Value: &c.Price, ValueDecimal: new(money.Decimal(c.Price)), CheckedAt: when(c.CheckedAt), AgeSeconds: &age}
	}
	const created = 201
	return Offered{AssetID: c.Offer.AssetID, Status: created, Listing: &listing, PriceCheck: &check}
}

// WithdrawnOf converts the result of cancelling a listing in a batch.
func WithdrawnOf(listing int64, w *market.Cancellation) Withdrawn {
	if w.Refused != nil {
		return Withdrawn{ID: id(listing), Status: w.Refused.Kind.Status(), Error: &Refusal{Code: w.Refused.Code, Detail: w.Refused.Detail}}
	}
	l := ListingOf(&w.Listing)
	const cancelled = 200
	return Withdrawn{ID: l.ID, Status: cancelled, Listing: &l}
}

// TradeOf converts a trade to the type that the API returns.
func TradeOf(t *market.Trade) Trade {
	return Trade{
		ID: id(t.ID), ListingID: id(t.ListingID), SellerID: t.Seller, BuyerID: t.Buyer, AppID: t.AppID, ContextID: t.ContextID, AssetID: t.AssetID,
		MarketHashName: t.Item.Name, Phase: t.Item.Phase, Amount: t.Amount, Price: t.Price, Fee: t.Fee, Net: t.Net, Currency: t.Currency,
		FeeRule: t.FeeRule, FeeVersion: t.FeeVersion, PaymentMethod: text(t.PaymentMethod), Country: text(t.Country),
		TransactionID: id(t.TransactionID), State: string(t.State), CreatedAt: t.CreatedAt,
		CompletedAt: when(t.CompletedAt), ReversibleUntil: when(t.ReversibleUntil()), SettlesAt: when(t.SettleAt),
		SettledAt: when(t.SettledAt), ReversedAt: when(t.ReversedAt),
	}
}

// Listings lists listings, newest first.
func (r *MarketReader) Listings(ctx context.Context, f ListingFilter, after string, limit int) (Page[Listing], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[Listing]{}, err
	}
	defer leave()
	none := Page[Listing]{Items: []Listing{}}
	by := market.ListingFilter{
		AppID: f.AppID, Name: f.Name, AnyPhase: f.Phase == nil, State: market.ListingState(f.State), Currency: f.Currency,
		MinPrice: f.MinPrice, MaxPrice: f.MaxPrice, Before: 1 << 62,
	}
	if f.Phase != nil {
		by.Phase = *f.Phase
	}
	if by.Created, err = readCreated(after, "listings", f.From, f.To, &by.Before); err != nil {
		return none, err
	}
	if f.UserID != "" {
		key, known, err := user.Key(ctx, r.o.Store, f.UserID)
		if err != nil || !known {
			return none, err
		}
		by.Seller = key
	}
	rows, err := market.Listings(ctx, r.o.Store, by, limit+1)
	return page(rows, limit, ListingOf, func(l *market.Listing) *string { return createdCursor("listings", f.From, f.To, l.CreatedAt, l.ID) }), err
}

// Listing returns a listing. It returns a fault.NotFound if the listing does not exist.
func (r *MarketReader) Listing(ctx context.Context, id int64) (Listing, error) {
	l, err := market.ReadListing(ctx, r.o.Store, id)
	if err != nil {
		return Listing{}, err
	}
	if l == nil {
		return Listing{}, market.NotFound("listing", id)
	}
	return ListingOf(l), nil
}

// Trades lists trades, newest first.
func (r *MarketReader) Trades(ctx context.Context, f TradeFilter, after string, limit int) (Page[Trade], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[Trade]{}, err
	}
	defer leave()
	none := Page[Trade]{Items: []Trade{}}
	by := market.TradeFilter{AppID: f.AppID, State: market.TradeState(f.State), Before: 1 << 62}
	if by.Created, err = readCreated(after, "trades", f.From, f.To, &by.Before); err != nil {
		return none, err
	}
	if f.UserID != "" {
		key, known, err := user.Key(ctx, r.o.Store, f.UserID)
		if err != nil || !known {
			return none, err
		}
		by.User = key
	}
	rows, err := market.Trades(ctx, r.o.Store, by, limit+1)
	return page(rows, limit, TradeOf, func(t *market.Trade) *string { return createdCursor("trades", f.From, f.To, t.CreatedAt, t.ID) }), err
}

// Trade returns a trade. It returns a fault.NotFound if the trade does not exist.
func (r *MarketReader) Trade(ctx context.Context, id int64) (Trade, error) {
	t, err := market.ReadTrade(ctx, r.o.Store, id)
	if err != nil {
		return Trade{}, err
	}
	if t == nil {
		return Trade{}, market.NotFound("trade", id)
	}
	return TradeOf(t), nil
}
