// Package market holds listings, trades and the figures of top traders. Each change is
// one transaction, including the money in the ledger. Pricing never delays or refuses a
// listing.
package market

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/wallet"
)

// MaxPrice is the highest price of a listing, in minor units of its currency.
const MaxPrice = 1_000_000_000_000

// Reversible is how long Steam lets a trade be reversed after it was completed.
const Reversible = 7 * 24 * time.Hour

// ListingState is the state of a listing.
type ListingState string

// The states of a listing. Only an active one can be bought.
const (
	Active ListingState = "active"
	// Reserved is a purchase in progress. A purchase is one transaction, so no reader
	// sees this state.
	Reserved  ListingState = "reserved"
	Sold      ListingState = "sold"
	Cancelled ListingState = "cancelled"
	Expired   ListingState = "expired" // the asset left the seller's inventory, or cannot be traded any more
)

// TradeState is the state of a trade.
type TradeState string

// The states of a trade.
const (
	Pending   TradeState = "pending"   // bought, and not handed over yet
	Completed TradeState = "completed" // handed over; the seller's credit is held
	Reversed  TradeState = "reversed"  // taken back
	Settled   TradeState = "settled"   // the seller can spend the credit
)

// Place is where an asset is in its owner's inventory.
type Place struct {
	AppID     int32
	ContextID string
	AssetID   string
}

// Listing is an asset that is offered.
type Listing struct {
	ID        int64
	SellerKey int64
	Seller    string // the platform's id
	Place
	ItemID    int64
	Item      catalog.Key
	Amount    int64
	Price     int64 // minor units, of all of it
	Currency  money.Currency
	State     ListingState
	CreatedAt time.Time
	EndedAt   time.Time // zero while it is active
	TradeID   int64     // 0: not sold
}

// Trade is an asset that was bought.
type Trade struct {
	ID                  int64
	ListingID           int64
	SellerKey, BuyerKey int64
	Seller, Buyer       string // the platform's ids
	Place                      // as it was the seller's
	ItemID              int64
	Item                catalog.Key
	Amount              int64
	Price               int64 // minor units
	Currency            money.Currency
	PaymentMethod       string // of the purchase; empty: not given
	Country             string // the same
	Fee                 int64  // minor units
	Net                 int64  // what the seller gets: the price without the fee
	FeeRule             string // that charged the fee
	FeeVersion          int64  // of the rules that it is of
	TransactionID       int64  // of the wallet
	State               TradeState
	CreatedAt           time.Time
	CompletedAt         time.Time // zero: it was not
	SettleAt            time.Time // when the seller's credit is held no longer; zero until it is completed
	SettledAt           time.Time
	ReversedAt          time.Time
	Volume              money.Micro // of the base currency, as counted for top traders; 0 until it is completed
	Ranked              money.Micro // of the volume, what counts for a rank
	Seal                wallet.Seal // over all of this but what the item is called
}

// ReversibleUntil is until when Steam lets the trade be reversed; zero until it is
// completed.
func (t *Trade) ReversibleUntil() time.Time {
	if t.CompletedAt.IsZero() {
		return time.Time{}
	}
	return t.CompletedAt.Add(Reversible)
}

// Asset is what a listing needs to know of a row of an inventory.
type Asset struct {
	ItemID     int64 // 0: without a name
	Item       catalog.Key
	Amount     int64
	Tradable   bool
	InTransfer bool        // it was sold already
	Price      money.Micro // of one; 0: unknown
	CheckedAt  time.Time   // of the price
}

// Counts is what a trade changes in the figures of its users.
type Counts struct {
	Trades, Reversed int64
	Volume, Ranked   money.Micro
}

// Inventories brings sellers' inventories up to date before something is
// listed: missing prices are queued, and no inspection is started.
type Inventories interface {
	// Pull reads the user's inventory from Steam.
	Pull(ctx context.Context, userID string, appID int32, contextID string) error
	// Push stores an inventory from the platform.
	Push(ctx context.Context, userID string, push inventory.Push) error
	// Renew repeats the last push; false if there is none as of notBefore or later.
	Renew(ctx context.Context, userID string, appID int32, contextID string, notBefore time.Time) (bool, error)
	// SteamID returns a user's Steam id, or ""; known is false for an unknown user.
	SteamID(ctx context.Context, userID string) (steamID string, known bool, err error)
}

// Options configure a Service.
type Options struct {
	// InTx runs fn in a transaction. fn may run several times.
	InTx        func(ctx context.Context, fn func(*db.Tx) error) error
	Ledger      *wallet.Ledger
	Inventories Inventories
	// Due returns trades to be settled by now, in the order of when and id, after
	// the given ones.
	Due func(ctx context.Context, now, after time.Time, afterID int64, limit int) ([]Due, error)
	// Rates returns the exchange rates in force into the base currency.
	Rates  func(ctx context.Context) (pricing.Rates, error)
	Base   money.Currency
	Hold   time.Duration // of a seller's credit after completion
	MaxAge time.Duration // of an inventory that something is listed from
	Now    func() time.Time
}

// Service keeps listings and trades. Its methods may be used concurrently.
type Service struct{ o Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o: o} }

// notFound returns the fault for an unknown listing or trade.
func notFound(what string, id int64) error {
	return fault.New(fault.NotFound, what+"_not_found", "There is no %s %d.", what, id)
}

// wrap adds what failed to an error that is not a fault.
func wrap(what string, err error) error {
	if err == nil || fault.Of(err) != nil {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
