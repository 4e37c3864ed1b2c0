package market

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"assay/internal/db"
	"assay/internal/wallet"
)

// PriceListing changes the price of a listing. It returns false if the listing is not
// active.
func PriceListing(t *db.Tx, id, price int64) (bool, error) {
	n, err := t.Exec(`UPDATE listing SET price = $2 WHERE id = $1 AND state = 'active'`, id, price)
	return n == 1, err
}

// sellListing changes an active listing to sold. It returns the item id and the price of
// the listing, and a new trade id. item is 0 if the listing is not active.
func sellListing(t *db.Tx, id int64) (item, price, trade int64, err error) {
	err = t.QueryRow(`
		UPDATE listing SET state = 'sold', ended_at = $2 WHERE id = $1 AND state = 'active' RETURNING item_id, price, `+t.Dialect.NewTradeID(),
		id, db.Micros(t.Now())).Scan(&item, &price, &trade)
	_, err = db.Found(err)
	return item, price, trade, err
}

// insertTrade writes a new trade. The caller has sealed it.
func insertTrade(t *db.Tx, d Trade) error {
	n, err := t.Exec(`
		INSERT INTO trade (id, listing_id, seller_key, buyer_key, app_id, context_id, asset_id, item_id, amount, price, currency,
			payment_method, country, fee, net, fee_rule, fee_version, transaction_id, state, created_at, version, key_id, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		d.ID, d.ListingID, d.SellerKey, d.BuyerKey, d.AppID, d.ContextID, d.AssetID, d.ItemID, d.Amount, d.Price, d.Currency,
		d.PaymentMethod, d.Country, d.Fee, d.Net, d.FeeRule, d.FeeVersion, d.TransactionID, d.State, db.Micros(d.CreatedAt),
		d.Seal.Version, d.Seal.KeyID, d.Seal.MAC[:])
	if err == nil && n != 1 {
		err = wallet.NotWritten(fmt.Sprintf("trade %d", d.ID))
	}
	return err
}

// updateTrade writes the fields of a trade that can change: state, times, counted volume
// and seal.
func updateTrade(t *db.Tx, d Trade) error {
	n, err := t.Exec(`
		UPDATE trade SET state = $2, completed_at = $3, settle_at = $4, settled_at = $5, reversed_at = $6, volume = $7, ranked = $8,
			version = $9, key_id = $10, mac = $11
		WHERE id = $1`, d.ID, d.State, db.Micros(d.CompletedAt), db.Micros(d.SettleAt), db.Micros(d.SettledAt), db.Micros(d.ReversedAt), d.Volume, d.Ranked,
		d.Seal.Version, d.Seal.KeyID, d.Seal.MAC[:])
	if err == nil && n != 1 {
		err = wallet.NotWritten(fmt.Sprintf("trade %d", d.ID))
	}
	return err
}

// tradeColumns selects trades. The name and phase come from the item row and not from the
// trade. Old trades still show the same item, because Assay never deletes an item or
// changes its key.
const tradeColumns = `
SELECT d.id, d.listing_id, d.seller_key, d.buyer_key, s.user_id, b.user_id, d.app_id, d.context_id, d.asset_id, d.item_id, i.name, i.phase,
	d.amount, d.price, d.currency, d.payment_method, d.country, d.fee, d.net, d.fee_rule, d.fee_version, d.transaction_id, d.state,
	d.created_at, d.completed_at, d.settle_at, d.settled_at, d.reversed_at, d.volume, d.ranked,
	d.version, d.key_id, d.mac
FROM trade d JOIN platform_user s ON s.id = d.seller_key JOIN platform_user b ON b.id = d.buyer_key JOIN item i ON i.id = d.item_id`

const tradeByID = tradeColumns + ` WHERE d.id = $1`

func scanTrade(r *sql.Rows, d *Trade) error {
	var created, completed, settle, settled, reversed int64
	var mac []byte
	err := r.Scan(&d.ID, &d.ListingID, &d.SellerKey, &d.BuyerKey, &d.Seller, &d.Buyer, &d.AppID, &d.ContextID, &d.AssetID,
		&d.ItemID, &d.Item.Name, &d.Item.Phase, &d.Amount, &d.Price, &d.Currency, &d.PaymentMethod, &d.Country,
		&d.Fee, &d.Net, &d.FeeRule, &d.FeeVersion, &d.TransactionID,
		&d.State, &created, &completed, &settle, &settled, &reversed, &d.Volume, &d.Ranked,
		&d.Seal.Version, &d.Seal.KeyID, &mac)
	d.Seal.MAC = wallet.StoredHash(mac)
	d.Item.AppID, d.CreatedAt, d.CompletedAt = d.AppID, db.Moment(created), db.Moment(completed)
	d.SettleAt, d.SettledAt, d.ReversedAt = db.Moment(settle), db.Moment(settled), db.Moment(reversed)
	return err
}

// lockTrade locks a trade until the end of the transaction and returns it. It returns nil
// if the id is unknown.
func lockTrade(t *db.Tx, id int64) (*Trade, error) {
	if err := t.ExecPostgres(`SELECT id FROM trade WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
		return nil, err
	}
	return db.First(db.Collect(t.Context(), t, scanTrade, tradeByID, id))
}

// ReadTrade returns a trade, or nil if the id is unknown.
func ReadTrade(ctx context.Context, s *db.DB, id int64) (*Trade, error) {
	return db.First(db.Collect(ctx, s.Read, scanTrade, tradeByID, id))
}

// TradeFilter selects trades. A zero field selects all.
type TradeFilter struct {
	User    int64 // key of the seller or buyer
	AppID   int32
	State   TradeState
	Created Period
	Before  int64 // see ListingFilter.Before
}

const (
	tradeRest   = ` AND ($2 = 0 OR d.app_id = $2) AND ($3 = '' OR d.state = $3) ORDER BY d.id DESC LIMIT $4`
	tradesOfAll = tradeColumns + ` WHERE d.id < $1` + tradeRest
	// Each SELECT reads at most LIMIT rows from the index of sellers or buyers.
	tradesOfUser = tradeColumns + ` WHERE d.id IN (
			SELECT id FROM (SELECT id FROM trade WHERE seller_key = $5 AND id < $1 AND ($2 = 0 OR app_id = $2) AND ($3 = '' OR state = $3)
				ORDER BY id DESC LIMIT $4) sold
			UNION ALL
			SELECT id FROM (SELECT id FROM trade WHERE buyer_key = $5 AND id < $1 AND ($2 = 0 OR app_id = $2) AND ($3 = '' OR state = $3)
				ORDER BY id DESC LIMIT $4) bought)` + tradeRest

	tradesCreated = tradeColumns + ` WHERE d.created_at >= $5 AND (d.created_at, d.id) < ($6, $1)
		AND ($2 = 0 OR d.app_id = $2) AND ($3 = '' OR d.state = $3) ORDER BY d.created_at DESC, d.id DESC LIMIT $4`
	tradesCreatedOfUser = tradeColumns + ` WHERE d.id IN (
			SELECT id FROM (SELECT id FROM trade WHERE seller_key = $7 AND created_at >= $5 AND (created_at, id) < ($6, $1)
				AND ($2 = 0 OR app_id = $2) AND ($3 = '' OR state = $3) ORDER BY created_at DESC, id DESC LIMIT $4) sold
			UNION ALL
			SELECT id FROM (SELECT id FROM trade WHERE buyer_key = $7 AND created_at >= $5 AND (created_at, id) < ($6, $1)
				AND ($2 = 0 OR app_id = $2) AND ($3 = '' OR state = $3) ORDER BY created_at DESC, id DESC LIMIT $4) bought)
		ORDER BY d.created_at DESC, d.id DESC LIMIT $4`
)

// Trades returns trades, newest first.
func Trades(ctx context.Context, s *db.DB, f TradeFilter, limit int) ([]Trade, error) {
	args := []any{f.Before, f.AppID, string(f.State), limit}
	if f.Created.limited() {
		var from, to int64
		from, to, args[0] = f.Created.bounds(f.Before)
		if args = append(args, from, to); f.User != 0 {
			return db.Collect(ctx, s.Read, scanTrade, tradesCreatedOfUser, append(args, f.User)...)
		}
		return db.Collect(ctx, s.Read, scanTrade, tradesCreated, args...)
	}
	if f.User != 0 {
		return db.Collect(ctx, s.Read, scanTrade, tradesOfUser, append(args, f.User)...)
	}
	return db.Collect(ctx, s.Read, scanTrade, tradesOfAll, args...)
}

// ReadDue returns completed trades with a hold that ended at or before now, sorted by end
// of hold and id. It starts after the given time and id.
func ReadDue(ctx context.Context, s *db.DB, now, after time.Time, afterID int64, limit int) ([]Due, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, d *Due) error {
		var at int64
		err := r.Scan(&d.ID, &at)
		d.SettleAt = db.Moment(at)
		return err
	}, `SELECT id, settle_at FROM trade
		WHERE state = 'completed' AND settle_at <= $1 AND (settle_at, id) > ($2, $3) ORDER BY settle_at, id LIMIT $4`,
		db.Micros(now), db.Micros(after), afterID, limit)
}

const notReported = `NOT EXISTS (SELECT 1 FROM trade_overdue o WHERE o.trade_id = d.id)`

// insertOverdue records overdue trades that have no record yet, and returns them. most
// limits the number of trades of each state.
func insertOverdue(t *db.Tx, late Late, most int) ([]Trade, error) {
	ids, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `
		INSERT INTO trade_overdue (trade_id, at)
		SELECT late.id, $1 FROM (
			SELECT id FROM (SELECT d.id FROM trade d WHERE d.state = 'pending' AND d.created_at <= $2 AND `+notReported+`
				ORDER BY d.created_at, d.id LIMIT $4) pending
			UNION ALL
			SELECT id FROM (SELECT d.id FROM trade d WHERE d.state = 'completed' AND d.settle_at <= $3 AND `+notReported+`
				ORDER BY d.settle_at, d.id LIMIT $4) held) late
		WHERE TRUE ON CONFLICT (trade_id) DO NOTHING RETURNING trade_id`,
		db.Micros(t.Now()), db.Micros(late.BoughtBefore), db.Micros(late.HeldUntil), most)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return db.Collect(t.Context(), t, scanTrade, tradeColumns+` WHERE d.id `+t.Dialect.OneOf(1)+` ORDER BY d.id`, t.Dialect.EncodeIDs(ids))
}

// OpenTrades counts trades that are neither settled nor reversed.
type OpenTrades struct {
	Pending, Completed int64
	Overdue            int64 // trades of both states that were reported as overdue
}

// ReadOpenTrades counts the open trades.
func ReadOpenTrades(ctx context.Context, s *db.DB) (n OpenTrades, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM trade WHERE state = 'pending'), (SELECT count(*) FROM trade WHERE state = 'completed'),
			(SELECT count(*) FROM trade_overdue o JOIN trade d ON d.id = o.trade_id WHERE d.state IN ('pending', 'completed'))`).
		Scan(&n.Pending, &n.Completed, &n.Overdue)
	return n, err
}
