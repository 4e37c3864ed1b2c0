package market

import (
	"assay/internal/db"
)

// pairTrades returns how many trades of a day are counted for two users. No
// other transaction counts one for them before this one ends.
func pairTrades(t *db.Tx, day, user, other int64) (n int64, err error) {
	// The row of all days stands for the pair; that of the day may not be there yet.
	if err := t.ExecPostgres(`
		INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked) VALUES (0, $1, $2, 0, 0, 0, 0)
		ON CONFLICT (day, user_key, other_key) DO UPDATE SET trades = trader_pair.trades`, min(user, other), max(user, other)); err != nil {
		return 0, err
	}
	err = t.QueryRow(`SELECT coalesce(sum(trades), 0) FROM trader_pair WHERE day = $1 AND user_key = $2 AND other_key = $3`, day, user, other).Scan(&n)
	return n, err
}

// countTrade adds to what the two users of a trade traded with each other, on its
// day and in all, and notes that their figures changed.
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

// nextTraderVersion holds a slot and returns its next version.
func nextTraderVersion(t *db.Tx, slot int64) (version int64, err error) {
	err = t.QueryRow(`
		INSERT INTO trader_version (slot, version) VALUES ($1, 1)
		ON CONFLICT (slot) DO UPDATE SET version = trader_version.version + 1 RETURNING version`, slot).Scan(&version)
	return version, err
}

// unrank notes that a deleted user has no figures.
func unrank(t *db.Tx, user int64) error {
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

// TraderSlots is over how many rows the count of changes is spread, so that trades
// do not wait for each other.
const TraderSlots = 16
