package market

import (
	"assay/internal/db"
)

// pairTrades returns the number of counted trades between two users on a day. It prevents
// other transactions from counting trades of this pair until the transaction ends.
func pairTrades(t *db.Tx, day, user, other int64) (n int64, err error) {
	// Lock the row with the total of the pair (day 0). The row of the day may not exist yet.
	if err := t.ExecPostgres(`
		INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked) VALUES (0, $1, $2, 0, 0, 0, 0)
		ON CONFLICT (day, user_key, other_key) DO UPDATE SET trades = trader_pair.trades`, min(user, other), max(user, other)); err != nil {
		return 0, err
	}
	err = t.QueryRow(`SELECT coalesce(sum(trades), 0) FROM trader_pair WHERE day = $1 AND user_key = $2 AND other_key = $3`, day, user, other).Scan(&n)
	return n, err
}

// countTrade adds c to the statistics of the two users of a trade, both for the day and in
// total. It also gives both users a new version, so that caches reload their statistics.
func countTrade(t *db.Tx, day int64, d Trade, c Counts) error {
	first, second := min(d.SellerKey, d.BuyerKey), max(d.SellerKey, d.BuyerKey)
	if _, err := t.Exec(`
		INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked)
		VALUES (0, $2, $3, $4, $5, $6, $7), (0, $3, $2, $4, $5, $6, $7), ($1, $2, $3, $4, $5, $6, $7), ($1, $3, $2, $4, $5, $6, $7)
		ON CONFLICT (day, user_key, other_key) DO UPDATE SET trades = trader_pair.trades + excluded.trades,
			reversed = trader_pair.reversed + excluded.reversed, volume = trader_pair.volume + excluded.volume,
			ranked = trader_pair.ranked + excluded.ranked`,
		day, first, second, c.Trades, c.Reversed, c.Volume, c.Ranked); err != nil {
		return err
	}
	slot := d.ID % TraderSlots
	version, err := nextTraderVersion(t, slot)
	if err != nil {
		return err
	}
	_, err = t.Exec(`
		INSERT INTO trader (user_key, slot, version) VALUES ($1, $3, $4), ($2, $3, $4)
		ON CONFLICT (user_key) DO UPDATE SET slot = excluded.slot, version = excluded.version`, first, second, slot, version)
	return err
}

// nextTraderVersion increments the version of a slot and returns it. The row stays locked
// until the transaction ends.
func nextTraderVersion(t *db.Tx, slot int64) (version int64, err error) {
	err = t.QueryRow(`
		INSERT INTO trader_version (slot, version) VALUES ($1, 1)
		ON CONFLICT (slot) DO UPDATE SET version = trader_version.version + 1 RETURNING version`, slot).Scan(&version)
	return version, err
}

// removeFromRanking gives a deleted user a new version, so that caches drop the user.
func removeFromRanking(t *db.Tx, user int64) error {
	var traded bool
	if err := t.QueryRow(`SELECT EXISTS (SELECT 1 FROM trader WHERE user_key = $1)`, user).Scan(&traded); err != nil || !traded {
		return err
	}
	slot := user % TraderSlots
	version, err := nextTraderVersion(t, slot)
	if err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE trader SET slot = $2, version = $3 WHERE user_key = $1`, user, slot, version)
	return err
}

// TraderSlots is the number of version counters. Concurrent trades usually use different
// counters and do not wait for each other.
const TraderSlots = 16
