package ranking

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/market"
)

// TraderVersions holds the versions of the slots of traders. Each change of a trader's figures
// increments the version of the trader's slot and locks the slot until the commit. A version
// therefore includes all earlier changes.
type TraderVersions [market.TraderSlots]int64

// traderVersions returns the current versions.
func traderVersions(ctx context.Context, s *db.DB) (v TraderVersions, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var slot, version int64
		err := r.Scan(&slot, &version)
		v[slot] = version
		return err
	}, `SELECT slot, version FROM trader_version ORDER BY slot`)
	return v, err
}

// Before reports whether a slot has an older version than in other. This happens after a
// restore of the database.
func (v TraderVersions) Before(other TraderVersions) bool {
	for slot := range v {
		if v[slot] < other[slot] {
			return true
		}
	}
	return false
}

// slotColumns are the columns of a table of slot versions.
const slotColumns = "slot bigint, version bigint"

// changedTraders returns up to limit users whose figures changed after the given versions.
func changedTraders(ctx context.Context, s *db.DB, since TraderVersions, limit int) ([]int64, error) {
	slots := db.NewTable(slotColumns, market.TraderSlots)
	for slot, version := range since {
		slots.Int(int64(slot), version)
	}
	return db.Collect(ctx, s.Read, func(r *sql.Rows, user *int64) error { return r.Scan(user) },
		`SELECT t.user_key FROM `+s.Dialect.Rows(2, slotColumns)+` s CROSS JOIN trader t WHERE t.slot = s.slot AND t.version > s.version LIMIT $1`,
		slots.Params(s.Dialect, limit)...)
}

// Trader holds the trading figures of a user within a period.
type Trader struct {
	Key, Trades, Reversed, Others int64
	Volume, Ranked                int64 // in millionths of the base currency
}

// Days is a range of days since the epoch in UTC, both ends included. The zero value means all
// days.
type Days struct{ First, Last int64 }

const (
	traderSums = `
SELECT user_key, CAST(sum(trades) AS bigint), CAST(sum(reversed) AS bigint), count(*) FILTER (WHERE trades > 0),
	CAST(sum(volume) AS bigint), CAST(sum(ranked) AS bigint)
FROM `
	traderPairs = `
(SELECT p.user_key, p.other_key, sum(p.trades) AS trades, sum(p.reversed) AS reversed, sum(p.volume) AS volume, sum(p.ranked) AS ranked FROM `
	// If one user of a trade was deleted, the trade still counts for the other user.
	traderGroups = ` GROUP BY user_key HAVING sum(trades) > 0 AND user_key NOT IN (SELECT id FROM platform_user WHERE deleted_at <> 0)`

	tradersEver   = traderSums + `trader_pair WHERE day = 0` + traderGroups
	tradersWithin = traderSums + traderPairs + `trader_pair p WHERE p.day BETWEEN $1 AND $2 GROUP BY p.user_key, p.other_key) p` + traderGroups
)

// eachTrader calls fn for each user with a counted trade.
func eachTrader(ctx context.Context, s *db.DB, days Days, fn func(Trader)) error {
	query, args := tradersEver, []any(nil)
	if days != (Days{}) {
		query, args = tradersWithin, []any{days.First, days.Last}
	}
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var d Trader
		err := scanTrader(r, &d)
		fn(d)
		return err
	}, query, args...)
	return err
}

func scanTrader(r *sql.Rows, d *Trader) error {
	return r.Scan(&d.Key, &d.Trades, &d.Reversed, &d.Others, &d.Volume, &d.Ranked)
}

// traders returns the figures of the given users that have a counted trade.
func traders(ctx context.Context, s *db.DB, days Days, users []int64) ([]Trader, error) {
	list := make([]int64, 0, days.Last-days.First+1)
	for day := days.First; day <= days.Last; day++ {
		list = append(list, day)
	}
	// Look up each row by its key. A filter by days would read all traders.
	return db.CollectByIndex(ctx, s, scanTrader, `
		WITH wanted AS MATERIALIZED (SELECT d.day, u.user_key FROM `+s.Dialect.Rows(1, "day bigint")+` d CROSS JOIN `+s.Dialect.Rows(2, "user_key bigint")+` u)`+
		traderSums+traderPairs+`
			wanted w CROSS JOIN trader_pair p WHERE p.day = w.day AND p.user_key = w.user_key GROUP BY p.user_key, p.other_key) p`+traderGroups,
		s.Dialect.EncodeIDs(list), s.Dialect.EncodeIDs(users))
}

// TraderName is the public name of a user.
type TraderName struct {
	Key  int64
	Name string // empty: no name, or the user opted out
}

// TraderNames returns the public names of users. It looks them up one by one, which is fastest
// for a few users.
func TraderNames(ctx context.Context, s *db.DB, keys []int64) ([]TraderName, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, n *TraderName) error { return r.Scan(&n.Key, &n.Name) }, `
		SELECT k.id, coalesce((SELECT u.display_name FROM platform_user u WHERE u.id = k.id AND u.leaderboard), '')
		FROM `+s.Dialect.Rows(1, "id bigint")+` k`, s.Dialect.EncodeIDs(keys))
}
