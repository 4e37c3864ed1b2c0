package view

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

// PricedRow is an asset with its value.
type PricedRow struct {
	inventory.Row
	AppID      int32
	ContextID  string
	Name       string
	Phase      string
	Value      money.Micro // of one unit; 0: unknown
	InTransfer bool        // sold, and not yet removed by an inventory sync
	UpdatedAt  time.Time   // last change of the item's price
	Status     pricing.Status
	CheckedAt  time.Time // last confirmation of the item's price
	prices.Figures
	// Inspection is the result of inspecting the asset. Its State is empty if the asset cannot
	// be inspected.
	Inspection  inventory.Inspection
	Certificate string // from Steam's asset properties; empty: none
}

// ReadInventory returns a user's rows in one game (0: all games) with IDs above after. It
// selects the IDs of the page first, because the database would otherwise join all of the
// user's rows before sorting. Without "id + 0", PostgreSQL would read the primary key of a
// partition, (id, user_key), from its beginning to the user's rows, because it is in order.
func ReadInventory(ctx context.Context, s *db.DB, user int64, app int32, after int64, limit int) ([]PricedRow, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, v *PricedRow) error {
		var updated, checked int64
		var stickers, charms string
		n := &v.Inspection
		if err := r.Scan(&v.ID, &v.AppID, &v.ContextID, &v.AssetID, &v.ItemID, &v.ClassID, &v.InstanceID, &v.Amount,
			&v.Tradable, &v.Marketable, &v.Inspect, &v.InTransfer, &v.Value, &v.Name, &v.Phase, &updated,
			&v.Status, &checked, &v.Interval.Low, &v.Interval.High, &v.Average, &v.UsedMarkets,
			&n.State, &n.Code, &n.Source, &n.Phase, &n.Wear, &n.Seed, &n.Finish, &n.DefIndex, &n.Quality, &n.Rarity, &n.Kills, &n.Charm,
			&n.NameTag, &stickers, &charms, &v.Certificate); err != nil {
			return err
		}
		v.UpdatedAt, v.CheckedAt, n.ID = db.Moment(updated), db.Moment(checked), v.ID
		return errors.Join(json.Unmarshal([]byte(stickers), &n.Stickers), json.Unmarshal([]byte(charms), &n.Charms))
	}, `SELECT v.id, v.app_id, v.context_id, v.asset_id, v.item_id, v.class_id, v.instance_id, v.amount,
			v.tradable, v.marketable, v.inspect, v.in_transfer, coalesce(v.value, 0), coalesce(i.name, ''), coalesce(i.phase, ''), coalesce(i.price_updated_at, 0),
			coalesce(i.status, 5), coalesce(i.price_checked_at, 0), coalesce(i.interval_low, 0), coalesce(i.interval_high, 0),
			coalesce(i.average, 0), coalesce(i.used_markets, 0),
			coalesce(n.state, ''), coalesce(n.code, ''), coalesce(n.source, ''), coalesce(n.phase, ''), coalesce(n.wear, ''),
			coalesce(n.seed, -1), coalesce(n.finish, -1), coalesce(n.def_index, -1), coalesce(n.quality, -1), coalesce(n.rarity, -1),
			coalesce(n.kills, -1), coalesce(n.charm, -1), coalesce(n.name_tag, ''), coalesce(n.stickers, '[]'), coalesce(n.charms, '[]'),
			coalesce(n.given_certificate, '')
		FROM (SELECT id FROM inventory WHERE user_key = $1 AND id > $2 AND ($3 = 0 OR app_id = $3) ORDER BY id + 0 LIMIT $4) p
		CROSS JOIN inventory v LEFT JOIN item i ON i.id = v.item_id LEFT JOIN inspection n ON n.inventory_id = v.id
		WHERE v.user_key = $1 AND v.id = p.id ORDER BY v.id`, user, after, app, limit)
}

// InventoryTotal is the total of a user's rows in one game or all games.
type InventoryTotal struct {
	Value          money.Sum
	Rows, Unpriced int64
}

// inventorySums are sums over rows with the same amount: few amounts are different, but many values
// are. The sum of some values can exceed 64 bits, so their halves of 32 bits are added separately.
type inventorySums struct{ amount, high, low, rows, unpriced int64 }

const inventorySumColumns = `coalesce(v.amount, 0), CAST(coalesce(sum(v.value >> 32), 0) AS BIGINT),
	CAST(coalesce(sum(v.value & 4294967295), 0) AS BIGINT), count(v.id), count(v.id) FILTER (WHERE coalesce(v.value, 0) = 0)`

// columns returns the destinations of inventorySumColumns.
func (s *inventorySums) columns() []any {
	return []any{&s.amount, &s.high, &s.low, &s.rows, &s.unpriced}
}

// add adds sums. An amount has at most 31 bits.
func (t InventoryTotal) add(s *inventorySums) InventoryTotal {
	value := t.Value.Add(money.Micro(s.high), s.amount<<32).Add(money.Micro(s.low), s.amount)
	return InventoryTotal{Value: value, Rows: t.Rows + s.rows, Unpriced: t.Unpriced + s.unpriced}
}

// ReadInventoryTotal totals a user's rows in one game (0: all games).
func ReadInventoryTotal(ctx context.Context, s *db.DB, user int64, app int32) (t InventoryTotal, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var sums inventorySums
		err := r.Scan(sums.columns()...)
		t = t.add(&sums)
		return err
	}, `SELECT `+inventorySumColumns+` FROM inventory v WHERE v.user_key = $1 AND ($2 = 0 OR v.app_id = $2) GROUP BY v.amount`, user, app)
	return t, err
}

// readInventories returns the inventories of a user.
func readInventories(ctx context.Context, s *db.DB, user int64) (out []UserInventory, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var v UserInventory
		var at int64
		var sums inventorySums
		if err := r.Scan(append(sums.columns(), &v.AppID, &v.ContextID, &at)...); err != nil {
			return err
		}
		if n := len(out); n == 0 || out[n-1].AppID != v.AppID || out[n-1].ContextID != v.ContextID {
			v.SyncedAt = db.Moment(at)
			out = append(out, v)
		}
		u := &out[len(out)-1]
		t := InventoryTotal{u.Value, u.Rows, u.Unpriced}.add(&sums)
		u.Value, u.Rows, u.Unpriced = t.Value, t.Rows, t.Unpriced
		return nil
	}, `SELECT `+inventorySumColumns+`, s.app_id, s.context_id, s.snapshot_at
		FROM inventory_snapshot s LEFT JOIN inventory v ON v.user_key = s.user_key AND v.app_id = s.app_id AND v.context_id = s.context_id
		WHERE s.user_key = $1 GROUP BY s.app_id, s.context_id, s.snapshot_at, v.amount ORDER BY s.app_id, s.context_id`, user)
	return out, err
}
