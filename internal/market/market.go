// Package market holds listings, trades and top traders. It has the rules; the store
// has the SQL. Each change is one transaction, including the money in the ledger.
// Pricing never delays or refuses a listing.
package market

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/user"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
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

// Tx is what listings and trades need of a write transaction. A row that does not
// exist is nil.
type Tx interface {
	idempotency.ResponseStore
	wallet.Tx
	// ActiveFees returns the fee rules in force.
	ActiveFees() (fee.Activation, error)
	// EnsureUser returns the key of a user, who is created if unknown or deleted, and
	// holds the user: no other transaction syncs an inventory of, lists for, buys for
	// or deletes the user before this one ends.
	EnsureUser(userID string) (key int64, err error)
	// HoldUser is EnsureUser without creating one.
	HoldUser(userID string) (user.Held, error)
	// OpenDeals reports, as of one moment, whether a user has active listings, and
	// trades that are neither settled nor reversed.
	OpenDeals(key int64) (listings, trades bool, err error)
	// Wallets returns a user's accounts, each with its newest entry.
	Wallets(userID string) ([]wallet.State, error)
	// DeleteUser deletes a user that is held, except for the id.
	DeleteUser(key int64) error
	Asset(user int64, at Place) (*Asset, error)
	// MoveAsset marks an asset as in transfer.
	MoveAsset(user int64, at Place) error
	// KeepAsset marks an asset as in transfer no longer.
	KeepAsset(user int64, at Place) error
	// InsertListing returns the id; made is false where the asset is listed already.
	InsertListing(l Listing) (id int64, made bool, err error)
	Listing(id int64) (*Listing, error)
	// EndListing ends an active listing, and returns of which item it is then; 0: the
	// listing is not active.
	EndListing(id int64, state ListingState) (item int64, err error)
	// PriceListing gives an active listing a price; false where it is not active.
	PriceListing(id, price int64) (bool, error)
	// SellListing ends an active listing as sold, and returns of which item and price it
	// is then (item 0: the listing is not active) and an id that no trade has had.
	SellListing(id int64) (item, price, trade int64, err error)
	// InsertTrade writes a new trade, sealed.
	InsertTrade(t Trade) error
	// LockTrade locks the trade's row.
	LockTrade(id int64) (*Trade, error)
	// UpdateTrade writes state, times, what is counted and the seal.
	UpdateTrade(t Trade) error
	// NoteOverdue notes trades that are overdue and were not noted before, and returns
	// them: at most so many of each state.
	NoteOverdue(late Late, most int) ([]Trade, error)
	AddEvent(e event.Data) error
	// PairTrades returns how many trades of a day are counted for two users.
	PairTrades(day, user, other int64) (int64, error)
	// CountTrade adds to what the two users of a trade traded with each other.
	CountTrade(day int64, t Trade, c Counts) error
}

// Counts is what a trade changes in the figures of its users.
type Counts struct {
	Trades, Reversed int64
	Volume, Ranked   money.Micro
}

// Inventories brings sellers' inventories up to date before something is listed
// (contract, rule 4): missing prices are queued, and nothing else is started.
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

// Options are what a Service is made of.
type Options struct {
	// InTx runs fn in a transaction. fn may run several times.
	InTx        func(ctx context.Context, fn func(Tx) error) error
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
