package store

import (
	"context"
	"database/sql"

	"assay/internal/pricing"
	"assay/internal/refresh"
)

// LevelSet returns the newest level set of a game, or nil.
func (s *Store) LevelSet(ctx context.Context, app int32) (*pricing.Set, error) {
	sets, err := collect(ctx, s.read, func(r *sql.Rows, set *pricing.Set) error {
		var data []byte
		if err := r.Scan(&data); err != nil {
			return err
		}
		return set.UnmarshalBinary(data)
	}, `SELECT data FROM level_set WHERE app_id = $1 ORDER BY id DESC LIMIT 1`, app)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	return &sets[0], nil
}

// StoredQuotes calls fn for the stored quotes of some markets in a game.
func (s *Store) StoredQuotes(ctx context.Context, app int32, markets []int64, fn func(*refresh.StoredQuote)) error {
	var q refresh.StoredQuote
	_, err := collect(ctx, s.read, func(r *sql.Rows, _ *struct{}) error {
		var fetched int64
		err := r.Scan(&q.MarketID, &q.Name, &q.Phase, &q.Currency, &q.Ask, &q.Sale, &fetched)
		q.FetchedAt = moment(fetched)
		if err == nil {
			fn(&q)
		}
		return err
	}, `
		SELECT s.market_id, i.name, i.phase, s.currency, s.ask, s.sale, CASE WHEN s.fetched_at = 0 THEN i.quotes_at ELSE s.fetched_at END
		FROM item i JOIN snapshot s ON s.item_id = i.id
		WHERE i.app_id = $1 AND s.market_id IN `+s.d.ids(2), app, s.d.packIDs(markets))
	return err
}

// MarketMemories returns what validation remembers of a game's markets.
func (s *Store) MarketMemories(ctx context.Context, app int32) (map[int64]refresh.MarketMemory, error) {
	all, err := collect(ctx, s.read, func(r *sql.Rows, m *refresh.MarketMemory) error {
		var state, history []byte
		if err := r.Scan(&m.MarketID, &state, &history); err != nil {
			return err
		}
		m.History = history
		return m.State.UnmarshalBinary(state)
	}, `SELECT market_id, state, history FROM market_memory WHERE app_id = $1`, app)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]refresh.MarketMemory, len(all))
	for _, m := range all {
		out[m.MarketID] = m
	}
	return out, nil
}

// learn stores what a job learned of a game. A set that equals the newest one is
// not stored again.
func (t *Tx) learn(job int64, l refresh.Learned) error {
	set, err := l.Set.MarshalBinary()
	if err != nil {
		return err
	}
	movers, err := l.Movers.MarshalBinary()
	if err != nil {
		return err
	}
	if _, err := t.exec(`
		INSERT INTO level_set (app_id, learned_at, data) SELECT $1, $2, $3
		WHERE NOT EXISTS (SELECT 1 FROM level_set
			WHERE data = $3 AND id = (SELECT max(id) FROM level_set WHERE app_id = $1))`, l.AppID, micros(t.now), set); err != nil {
		return err
	}
	if _, err := t.exec(`
		INSERT INTO refresh_level (job_id, app_id, level_set, movers) SELECT $1, $2, max(id), $3 FROM level_set WHERE app_id = $2
		ON CONFLICT (job_id, app_id) DO NOTHING`, job, l.AppID, movers); err != nil {
		return err
	}
	for _, m := range l.Memories {
		state, err := m.State.MarshalBinary()
		if err != nil {
			return err
		}
		if _, err := t.exec(`
			INSERT INTO market_memory (market_id, app_id, state, history) VALUES ($1, $2, $3, $4)
			ON CONFLICT (market_id, app_id) DO UPDATE SET state = excluded.state, history = excluded.history`,
			m.MarketID, l.AppID, state, append([]byte{}, m.History...)); err != nil {
			return err
		}
	}
	return nil
}

// forgetLevels removes level sets that no job names any more, but for the newest of
// each game.
func (t *Tx) forgetLevels() error {
	_, err := t.exec(`
		DELETE FROM level_set WHERE id NOT IN (SELECT level_set FROM refresh_level)
			AND id NOT IN (SELECT max(id) FROM level_set GROUP BY app_id)`)
	return err
}
