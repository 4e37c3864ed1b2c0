// Package market implements listings and trades, and maintains the statistics of top
// traders. Each change is one transaction, which includes the postings in the ledger. A
// missing price never delays or prevents a listing.
package market

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory/syncs"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/wallet"
)

// MaxPrice is the highest price of a listing, in minor units of its currency.
const MaxPrice = 1_000_000_000_000

// Reversible is the time in which Steam allows the reversal of a completed trade.
const Reversible = 7 * 24 * time.Hour

// ListingState is the state of a listing.
type ListingState string

// The states of a listing. Only active listings can be bought.
const (
	Active ListingState = "active"
	// Reserved is the state during a purchase. A purchase is one transaction, so queries
	// never return this state.
	Reserved  ListingState = "reserved"
	Sold      ListingState = "sold"
	Cancelled ListingState = "cancelled"
	Expired   ListingState = "expired" // the asset left the seller's inventory or is no longer tradable
)

// TradeState is the state of a trade.
type TradeState string

// The states of a trade.
const (
	Pending   TradeState = "pending"   // bought, not yet handed over
	Completed TradeState = "completed" // handed over; the seller's credit is held
	Reversed  TradeState = "reversed"  // cancelled; the buyer has the money back
	Settled   TradeState = "settled"   // the hold has ended; the seller can spend the credit
)

// Place identifies an asset within the inventories of its owner.
type Place struct {
	AppID     int32
	ContextID string
	AssetID   string
}

// Listing is an asset for sale.
type Listing struct {
	ID        int64
	SellerKey int64
	Seller    string // user id of the platform
	Place
	ItemID    int64
	Item      catalog.Key
	Amount    int64
	Price     int64 // minor units, for the whole amount
	Currency  money.Currency
	State     ListingState
	CreatedAt time.Time
	EndedAt   time.Time // zero if active
	TradeID   int64     // 0 if not sold
}

// Trade is a sold listing.
type Trade struct {
	ID                  int64
	ListingID           int64
	SellerKey, BuyerKey int64
	Seller, Buyer       string // user ids of the platform
	Place                      // in the seller's inventory
	ItemID              int64
	Item                catalog.Key
	Amount              int64
	Price               int64 // minor units
	Currency            money.Currency
	PaymentMethod       string // empty: unknown
	Country             string // empty: unknown
	Fee                 int64  // minor units
	Net                 int64  // minor units that the seller gets: Price - Fee
	FeeRule             string // id of the rule that determined the fee
	FeeVersion          int64  // version of the fee rules
	TransactionID       int64  // wallet transaction of the sale
	State               TradeState
	CreatedAt           time.Time
	CompletedAt         time.Time // zero if never completed
	SettleAt            time.Time // end of the hold of the seller's credit; zero if never completed
	SettledAt           time.Time
	ReversedAt          time.Time
	Volume              money.Micro // amount in the base currency for top traders; 0 if never completed
	Ranked              money.Micro // part of Volume that counts for ranks
	Seal                wallet.Seal // covers all other fields except Item
}

// ReversibleUntil returns the end of the time in which Steam allows a reversal. It returns
// the zero time if the trade was never completed.
func (t *Trade) ReversibleUntil() time.Time {
	if t.CompletedAt.IsZero() {
		return time.Time{}
	}
	return t.CompletedAt.Add(Reversible)
}

// Asset is the part of an inventory row that a listing needs.
type Asset struct {
	ItemID     int64 // 0: no market hash name
	Item       catalog.Key
	Amount     int64
	Tradable   bool
	InTransfer bool        // sold, and not yet handed over
	Price      money.Micro // price of one piece; 0: unknown
	CheckedAt  time.Time   // when Price was last checked
}

// Counts is the change that a trade makes to the statistics of its two users.
type Counts struct {
	Trades, Reversed int64
	Volume, Ranked   money.Micro
}

// Options configure a Service.
type Options struct {
	Store  *db.DB
	Ledger *wallet.Ledger
	Syncs  *syncs.Service // updates the inventory of a seller before a listing
	// Rates returns the current exchange rates into the base currency.
	Rates  func(ctx context.Context) (pricing.Rates, error)
	Base   money.Currency
	Hold   time.Duration // how long the seller's credit is held after completion
	MaxAge time.Duration // maximum age of the inventory of a seller
	Now    func() time.Time
}

// Service implements listings and trades. Its methods are safe for concurrent use.
type Service struct{ o Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o: o} }

// NotFound returns the API error for an unknown listing or trade.
func NotFound(what string, id int64) error {
	return fault.New(fault.NotFound, what+"_not_found", "There is no %s %d.", what, id)
}

// wrap adds context to an error. It returns nil and faults unchanged.
func wrap(what string, err error) error {
	if err == nil || fault.Of(err) != nil {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
