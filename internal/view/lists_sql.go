package view

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/refresh"
)

// storedUser is a row of platform_user.
type storedUser struct {
	key                  int64
	id, steamID, display string
	createdAt            time.Time
}

// patternOf returns a LIKE pattern that matches lower-case texts that contain the search. For an
// empty search it returns "", which selects all rows.
func patternOf(search string) string {
	if search == "" {
		return ""
	}
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(search)) + "%"
}

// listUsers returns users after an id, in byte order, whose id, Steam id or display name
// contains the text in lower case ("": all users).
func listUsers(ctx context.Context, s *db.DB, search, after string, limit int) ([]storedUser, error) {
	pattern := patternOf(search)
	return db.Collect(ctx, s.Read, func(r *sql.Rows, u *storedUser) error {
		var created int64
		err := r.Scan(&u.key, &u.id, &u.steamID, &u.display, &created)
		u.createdAt = db.Moment(created)
		return err
	}, `SELECT id, user_id, steam_id, display_name, created_at FROM platform_user
		WHERE user_id > $1 AND deleted_at = 0
		AND ($2 = '' OR lower(user_id) LIKE $2 ESCAPE '\' OR steam_id LIKE $2 ESCAPE '\' OR lower(display_name) LIKE $2 ESCAPE '\')
		ORDER BY user_id LIMIT $3`, after, pattern, limit)
}

// inventoryTotals totals the rows of users.
func inventoryTotals(ctx context.Context, s *db.DB, users []int64) (map[int64]InventoryTotal, error) {
	out := make(map[int64]InventoryTotal, len(users))
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var user int64
		var sums inventorySums
		if err := r.Scan(append(sums.columns(), &user)...); err != nil {
			return err
		}
		out[user] = out[user].add(&sums)
		return nil
	}, `SELECT `+inventorySumColumns+`, v.user_key FROM inventory v
		WHERE v.user_key `+s.Dialect.OneOf(1)+` GROUP BY v.user_key, v.amount`, s.Dialect.EncodeIDs(users))
	return out, err
}

// inventoryAges returns the time of the oldest inventory of each user, over games and
// contexts. The result has no entry for a user without an inventory.
func inventoryAges(ctx context.Context, s *db.DB, users []int64) (map[int64]time.Time, error) {
	out := make(map[int64]time.Time, len(users))
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var user, at int64
		err := r.Scan(&user, &at)
		out[user] = db.Moment(at)
		return err
	}, `SELECT user_key, min(snapshot_at) FROM inventory_snapshot WHERE user_key `+s.Dialect.OneOf(1)+` GROUP BY user_key`, s.Dialect.EncodeIDs(users))
	return out, err
}

// Owner is a user with pieces of an item.
type Owner struct {
	UserID string
	Rows   int64 // assets
	Amount int64 // pieces
}

// readOwners returns the users who have an item, sorted by number of pieces, highest first.
func readOwners(ctx context.Context, s *db.DB, item int64, limit int) ([]Owner, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, o *Owner) error { return r.Scan(&o.UserID, &o.Rows, &o.Amount) },
		`SELECT u.user_id, o.assets, o.pieces FROM (
			SELECT user_key, count(*) AS assets, CAST(sum(amount) AS BIGINT) AS pieces
			FROM inventory WHERE item_id = $1 GROUP BY user_key) o JOIN platform_user u ON u.id = o.user_key
		ORDER BY o.pieces DESC, u.user_id LIMIT $2`, item, limit)
}

// countOwned counts the users who have an item, their assets of it, and the pieces.
func countOwned(ctx context.Context, s *db.DB, item int64) (users, rows, pieces int64, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT count(DISTINCT user_key), count(*), CAST(coalesce(sum(amount), 0) AS BIGINT) FROM inventory WHERE item_id = $1`, item).
		Scan(&users, &rows, &pieces)
	return users, rows, pieces, err
}

const jobBatchColumns = "job_id bigint, batch bigint"

// itemInJobs returns an item of several jobs, by job. The result has no entry for a job that does
// not contain the item.
func itemInJobs(ctx context.Context, s *db.DB, item int64, jobs []refresh.Job) (map[int64]StoredJobItem, error) {
	batches := db.NewTable(jobBatchColumns, len(jobs))
	for i := range jobs {
		batches.Int(jobs[i].ID, (item>>32)*int64(jobs[i].Batches)/catalog.Buckets)
	}
	out := make(map[int64]StoredJobItem, len(jobs))
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var job int64
		var i StoredJobItem
		err := r.Scan(&job, &i.State, &i.Reason, &i.PriceBefore, &i.PriceAfter, &i.Error)
		out[job] = i
		return err
	}, `SELECT r.job_id, r.state, r.reason, r.price_before, r.price_after, r.error FROM `+s.Dialect.Rows(2, jobBatchColumns)+` b`+
		s.Dialect.Lookup(`refresh_item r ON r.job_id = b.job_id AND r.batch = b.batch AND r.item_id = $1`), append([]any{item}, batches.Params(s.Dialect)...)...)
	return out, err
}

// HeldPrice is a price that the guard holds.
type HeldPrice struct {
	ID        int64
	Key       catalog.Key
	Price     money.Micro // published price; 0: none
	Candidate money.Micro // held price
	Since     time.Time
	Guard     string // state of the guard, decoded by pricing.DecodeGuard
	Reason    string // describes the move that exceeds a limit; empty: unknown
}

// readHeldPrices returns held prices after an item id, sorted by id.
func readHeldPrices(ctx context.Context, s *db.DB, after int64, limit int) ([]HeldPrice, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, h *HeldPrice) error {
		var since int64
		err := r.Scan(&h.ID, &h.Key.AppID, &h.Key.Name, &h.Key.Phase, &h.Price, &h.Candidate, &since, &h.Guard)
		h.Since = db.Moment(since)
		return err
	}, heldPricesSQL, after, limit)
}

// The index item_held serves these statements.
const (
	heldPricesSQL = `SELECT id, app_id, name, phase, price, candidate, candidate_at, guard FROM item WHERE candidate > 0 AND id > $1 ORDER BY id LIMIT $2`
	heldCountSQL  = `SELECT count(*) FROM item WHERE candidate > 0`
)

// countHeldPrices counts all held prices.
func countHeldPrices(ctx context.Context, s *db.DB) (n int64, err error) {
	err = s.Read.QueryRowContext(ctx, heldCountSQL).Scan(&n)
	return n, err
}

// countHeldOf counts the held prices of items.
func countHeldOf(ctx context.Context, s *db.DB, ids []int64) (n int64, err error) {
	err = s.Read.QueryRowContext(ctx, `SELECT count(*) FROM item WHERE candidate > 0 AND id `+s.Dialect.OneOf(1), s.Dialect.EncodeIDs(ids)).Scan(&n)
	return n, err
}

// MissingPrice is an entry of the missing-price queue.
type MissingPrice struct {
	Key      catalog.Key
	QueuedAt time.Time
	NextAt   time.Time // next attempt; zero: immediately
	Attempts int64
	LastAt   time.Time // last attempt; zero: none
	JobID    int64     // run that works on it; 0: none
	// Users is the number of users who have the item, and Rows the number of their assets.
	// FirstUser is the first of these users by id.
	Users, Rows int64
	FirstUser   string
	item        int64
	due         int64
	soonest     time.Time // last attempt plus the pause before a retry
}

// readMissing returns the entries of the missing-price queue after a due time and item, sorted by
// both.
func readMissing(ctx context.Context, s *db.DB, afterDue, afterItem int64, limit int) ([]MissingPrice, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, m *MissingPrice) error {
		var queued, soonest int64
		err := r.Scan(&m.item, &m.Key.AppID, &m.Key.Name, &m.Key.Phase, &queued, &m.due, &soonest, &m.Attempts, &m.JobID)
		m.QueuedAt, m.NextAt, m.soonest = db.Moment(queued), db.Moment(m.due), db.Moment(soonest)
		return err
	}, `SELECT m.item_id, i.app_id, i.name, i.phase, m.queued_at, m.due_at, m.soonest_at, m.attempts, m.job_id
		FROM missing_price m JOIN item i ON i.id = m.item_id
		WHERE (m.due_at, m.item_id) > ($1, $2) ORDER BY m.due_at, m.item_id LIMIT $3`, afterDue, afterItem, limit)
}

// addOwners adds the users with an item to entries of the missing-price queue.
func addOwners(ctx context.Context, s *db.DB, entries []MissingPrice) error {
	ids, at := make([]int64, len(entries)), make(map[int64]*MissingPrice, len(entries))
	for i := range entries {
		ids[i], at[entries[i].item] = entries[i].item, &entries[i]
	}
	return db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var item, users, rows int64
		var first string
		err := r.Scan(&item, &users, &rows, &first)
		m := at[item]
		m.Users, m.Rows, m.FirstUser = users, rows, first
		return err
	}, `SELECT v.item_id, count(DISTINCT v.user_key), count(*), min(u.user_id) FROM inventory v JOIN platform_user u ON u.id = v.user_key
		WHERE v.item_id `+s.Dialect.OneOf(1)+` GROUP BY v.item_id`, s.Dialect.EncodeIDs(ids))
}

// Hold is the credit of a seller that is held until a trade settles. Net is in minor units. The hold of
// a pending trade has no end yet: CompletedAt and EndsAt are zero.
type Hold struct {
	TradeID     int64
	SellerID    string
	BuyerID     string
	Net         int64
	Currency    money.Currency
	CompletedAt time.Time
	EndsAt      time.Time
	soldAt      time.Time
}

// position returns the place of a hold in the list: those of completed trades by their ends, then those
// of pending trades by the time of the sale.
func (h *Hold) position() (pending int, at int64) {
	if h.EndsAt.IsZero() {
		return 1, h.soldAt.UnixMicro()
	}
	return 0, h.EndsAt.UnixMicro()
}

// The indexes trade_due and trade_state serve these statements.
const (
	holdColumns = `SELECT t.id, s.user_id, b.user_id, t.net, t.currency, t.completed_at, t.settle_at, t.created_at
		FROM trade t JOIN platform_user s ON s.id = t.seller_key JOIN platform_user b ON b.id = t.buyer_key `
	completedHoldsSQL = holdColumns + `WHERE t.state = 'completed' AND (t.settle_at, t.id) > ($2, $3) AND ($1 = '' OR s.user_id = $1)
		ORDER BY t.settle_at, t.id LIMIT $4`
	pendingHoldsSQL = holdColumns + `WHERE t.state = 'pending' AND (t.created_at, t.id) > ($2, $3) AND ($1 = '' OR s.user_id = $1)
		ORDER BY t.created_at, t.id LIMIT $4`
)

// readHolds returns the holds after a position and a trade, sorted by both. An empty seller selects
// all sellers.
func readHolds(ctx context.Context, s *db.DB, seller string, pending int, after, afterTrade int64, limit int) ([]Hold, error) {
	read := func(statement string, after, afterTrade int64, limit int) ([]Hold, error) {
		return db.Collect(ctx, s.Read, func(r *sql.Rows, h *Hold) error {
			var completed, ends, sold int64
			err := r.Scan(&h.TradeID, &h.SellerID, &h.BuyerID, &h.Net, &h.Currency, &completed, &ends, &sold)
			h.CompletedAt, h.EndsAt, h.soldAt = db.Moment(completed), db.Moment(ends), db.Moment(sold)
			return err
		}, statement, seller, after, afterTrade, limit)
	}
	var holds []Hold
	if pending == 0 {
		var err error
		if holds, err = read(completedHoldsSQL, after, afterTrade, limit); err != nil || len(holds) >= limit {
			return holds, err
		}
		after, afterTrade = -1, 0
	}
	more, err := read(pendingHoldsSQL, after, afterTrade, limit-len(holds))
	return append(holds, more...), err
}

// Seller is a user with listings or trades, for operators.
type Seller struct {
	UserID        string
	Active        int64 // active listings
	Pending, Held int64 // pending trades, and completed trades that have not settled
	Settled       int64 // settled trades
	Reversed      int64 // reversed trades
	LastTrade     time.Time
	key           int64
}

// readSellers returns the users after an id, in byte order, who have listings or sales.
func readSellers(ctx context.Context, s *db.DB, search, after string, limit int) ([]Seller, error) {
	pattern := patternOf(search)
	sellers, err := db.Collect(ctx, s.Read, func(r *sql.Rows, u *Seller) error { return r.Scan(&u.key, &u.UserID) }, `
		SELECT id, user_id FROM platform_user u
		WHERE user_id > $1 AND ($2 = '' OR lower(user_id) LIKE $2 ESCAPE '\')
		AND (EXISTS (SELECT 1 FROM listing l WHERE l.seller_key = u.id) OR EXISTS (SELECT 1 FROM trade t WHERE t.seller_key = u.id))
		ORDER BY user_id LIMIT $3`, after, pattern, limit)
	if err != nil || len(sellers) == 0 {
		return nil, err
	}
	keys, at := make([]int64, len(sellers)), map[int64]*Seller{}
	for i := range sellers {
		keys[i], at[sellers[i].key] = sellers[i].key, &sellers[i]
	}
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var key, last int64
		var n Seller
		if err := r.Scan(&key, &n.Pending, &n.Held, &n.Settled, &n.Reversed, &last); err != nil {
			return err
		}
		u := at[key]
		u.Pending, u.Held, u.Settled, u.Reversed, u.LastTrade = n.Pending, n.Held, n.Settled, n.Reversed, db.Moment(last)
		return nil
	}, `SELECT seller_key, count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'completed'),
			count(*) FILTER (WHERE state = 'settled'), count(*) FILTER (WHERE state = 'reversed'), max(created_at)
		FROM trade WHERE seller_key `+s.Dialect.OneOf(1)+` GROUP BY seller_key`, s.Dialect.EncodeIDs(keys))
	if err != nil {
		return nil, err
	}
	return sellers, db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var key, n int64
		err := r.Scan(&key, &n)
		at[key].Active = n
		return err
	}, `SELECT seller_key, count(*) FROM listing WHERE state = 'active' AND seller_key `+s.Dialect.OneOf(1)+` GROUP BY seller_key`, s.Dialect.EncodeIDs(keys))
}
