package refresh

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// LevelSet returns the newest level set of a game, or nil.
func LevelSet(ctx context.Context, s *db.DB, app int32) (*pricing.Set, error) {
	sets, err := db.Collect(ctx, s.Read, scanSet, `SELECT data FROM level_set WHERE app_id = $1 ORDER BY id DESC LIMIT 1`, app)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	return &sets[0], nil
}

// learnedAt returns when the newest level set of a game was learned, or the zero time.
func learnedAt(ctx context.Context, s *db.DB, app int32) (time.Time, error) {
	var at int64
	err := s.Read.QueryRowContext(ctx, `
		SELECT coalesce((SELECT learned_at FROM level_set WHERE app_id = $1 ORDER BY id DESC LIMIT 1), 0)`, app).Scan(&at)
	return db.Moment(at), err
}

func scanSet(r *sql.Rows, set *pricing.Set) error {
	var data []byte
	if err := r.Scan(&data); err != nil {
		return err
	}
	return set.UnmarshalBinary(data)
}

// storedQuotes calls fn for each stored quote of a game.
func storedQuotes(ctx context.Context, s *db.DB, app int32, fn func(*NamedSnapshot)) error {
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var q NamedSnapshot
		var quotes string
		var quotesAt int64
		if err := r.Scan(&q.Name, &q.Phase, &quotesAt, &quotes); err != nil {
			return err
		}
		all, err := DecodeQuotes(quotes)
		for _, q.MarketSnapshot = range all {
			if q.FetchedAt.IsZero() {
				q.FetchedAt = db.Moment(quotesAt)
			}
			fn(&q)
		}
		return err
	}, `SELECT i.name, i.phase, i.quotes_at, q.quotes FROM item i JOIN item_quotes q ON q.item_id = i.id WHERE i.app_id = $1`, app)
	return err
}

// validationStates returns the validation state of each market of a game, without its
// history.
func validationStates(ctx context.Context, s *db.DB, app int32) (map[int64]pricing.ValidationState, error) {
	out := map[int64]pricing.ValidationState{}
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id int64
		var state []byte
		if err := r.Scan(&id, &state); err != nil {
			return err
		}
		var m pricing.ValidationState
		err := m.UnmarshalBinary(state)
		out[id] = m
		return err
	}, `SELECT market_id, state FROM market_validation WHERE app_id = $1`, app)
	return out, err
}

// marketHistory returns the good responses of a market in the last eight days.
func marketHistory(ctx context.Context, s *db.DB, app int32, market int64) (pricing.History, error) {
	var history []byte
	err := s.Read.QueryRowContext(ctx, `SELECT history FROM market_validation WHERE app_id = $1 AND market_id = $2`, app, market).Scan(&history)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	return history, nil
}

// MarketValidation is the validation state of a market of a game, with its newest good
// response.
type MarketValidation struct {
	MarketID int64
	AppID    int32
	State    pricing.ValidationState
	LastGood time.Time // fetch time of the newest good response
	Names    int       // number of names in that response; 0 if the market is queried by name
}

// MarketValidations returns the validation state of all markets.
func MarketValidations(ctx context.Context, s *db.DB) ([]MarketValidation, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, n *MarketValidation) error {
		var state []byte
		var last int64
		if err := r.Scan(&n.MarketID, &n.AppID, &state, &last, &n.Names); err != nil {
			return err
		}
		n.LastGood = db.Moment(last)
		return n.State.UnmarshalBinary(state)
	}, `
		SELECT m.market_id, m.app_id, m.state, coalesce(f.fetched_at, t.fetched_at, 0), coalesce(f.quotes, 0)
		FROM market_validation m
		LEFT JOIN (SELECT market_id, app_id, max(fetched_at) AS fetched_at, CAST(sum(quotes) AS BIGINT) AS quotes
			FROM market_file GROUP BY market_id, app_id) f ON f.market_id = m.market_id AND f.app_id = m.app_id
		LEFT JOIN market_state t ON t.market_id = m.market_id
		ORDER BY m.app_id, m.market_id`)
}

// learn stores what a job learned about a game.
func learn(t *db.Tx, job int64, l Learned) error {
	if err := addLevels(t, l); err != nil {
		return err
	}
	movers, err := l.Movers.MarshalBinary()
	if err != nil {
		return err
	}
	if l.Set == nil { // the movers of the newest set remain valid
		if err := t.QueryRow(`
			SELECT coalesce((SELECT movers FROM refresh_level WHERE app_id = $1 ORDER BY job_id DESC LIMIT 1), $2)`, l.AppID, movers).Scan(&movers); err != nil {
			return err
		}
	}
	if _, err := t.Exec(`
		INSERT INTO refresh_level (job_id, app_id, level_set, movers)
		SELECT $1, $2, id, $3 FROM level_set WHERE app_id = $2 ORDER BY id DESC LIMIT 1
		ON CONFLICT (job_id, app_id) DO NOTHING`, job, l.AppID, movers); err != nil {
		return err
	}
	for _, m := range l.States {
		state, err := m.State.MarshalBinary()
		if err != nil {
			return err
		}
		query := `
			INSERT INTO market_validation (market_id, app_id, state, history) VALUES ($1, $2, $3, $4)
			ON CONFLICT (market_id, app_id) DO UPDATE SET state = excluded.state`
		history := []byte{}
		if m.History != nil {
			query += `, history = excluded.history`
			history = m.History
		}
		if _, err := t.Exec(query, m.MarketID, l.AppID, state, history); err != nil {
			return err
		}
	}
	return nil
}

// addLevels stores a level set if it differs from the newest one of the game.
func addLevels(t *db.Tx, l Learned) error {
	if l.Set == nil {
		return nil
	}
	set, err := l.Set.MarshalBinary()
	if err != nil {
		return err
	}
	_, err = t.Exec(`
		INSERT INTO level_set (app_id, learned_at, data) SELECT $1, $2, $3
		WHERE NOT EXISTS (SELECT 1 FROM level_set
			WHERE data = $3 AND id = (SELECT max(id) FROM level_set WHERE app_id = $1))`, l.AppID, db.Micros(t.Now()), set)
	return err
}

// ReadLevels returns a level set by its id, or nil.
func ReadLevels(ctx context.Context, s *db.DB, id int64) (*pricing.Set, error) {
	sets, err := db.Collect(ctx, s.Read, scanSet, `SELECT data FROM level_set WHERE id = $1`, id)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	return &sets[0], nil
}

// jobLevels returns the learned data of a job, by game.
func jobLevels(ctx context.Context, s *db.DB, job int64) (map[int32]Levels, error) {
	out := map[int32]Levels{}
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var app int32
		var set, movers []byte
		l := Levels{Set: new(pricing.Set)}
		if err := r.Scan(&app, &l.ID, &set, &movers); err != nil {
			return err
		}
		err := errors.Join(l.Set.UnmarshalBinary(set), l.Movers.UnmarshalBinary(movers))
		out[app] = l
		return err
	}, `
		SELECT r.app_id, r.level_set, l.data, r.movers FROM refresh_level r JOIN level_set l ON l.id = r.level_set
		WHERE r.job_id = $1`, job)
	return out, err
}

// PriceBefore returns the price of an item before its last change up to a time, or 0 if it had none.
// If the price point has been folded, PriceBefore returns the close of the last day before the change.
func PriceBefore(ctx context.Context, s *db.DB, item int64, at time.Time) (price money.Micro, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT coalesce((SELECT price FROM price_point WHERE item_id = $1 AND at < change.at ORDER BY at DESC LIMIT 1),
			(SELECT close FROM price_day WHERE item_id = $1 AND market_id = 0 AND day < change.at ORDER BY day DESC LIMIT 1), 0)
		FROM (SELECT coalesce((SELECT max(at) FROM price_point WHERE item_id = $1 AND at <= $2), $2) AS at) change`, item, db.Micros(at)).Scan(&price)
	return price, err
}

// Refused is a market whose newest response for a game is in quarantine.
type Refused struct {
	Provider, Market, Reason string
	Since                    time.Time
}

// RefusedMarkets returns the markets whose newest response for a game is in quarantine.
func RefusedMarkets(ctx context.Context, s *db.DB, app int32) ([]Refused, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, v *Refused) error {
		var since int64
		err := r.Scan(&v.Provider, &v.Market, &v.Reason, &since)
		v.Since = db.Moment(since)
		return err
	}, `
		SELECT m.provider, m.key, f.quarantine, f.quarantined_since FROM market_file f JOIN market m ON m.id = f.market_id
		WHERE f.app_id = $1 AND f.quarantine <> '' ORDER BY m.provider, m.key, f.file`, app)
}

// readPastPrices returns the past prices of items that the guard compares a new price with.
func readPastPrices(ctx context.Context, s *db.DB, items []int64, now time.Time) (map[int64]PastPrices, error) {
	day, week := now.Add(-24*time.Hour), now.Add(-7*24*time.Hour)
	out := make(map[int64]PastPrices, len(items))
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id, first int64
		var p PastPrices
		err := r.Scan(&id, &first, &p.First.Price, &p.Day, &p.Week, &p.Range.Low, &p.Range.High)
		p.First.At = db.Moment(first)
		p.Range = p.Range.With(p.Week)
		out[id] = p
		return err
	}, `
		SELECT i.id,
			coalesce((SELECT p.at FROM price_point p WHERE p.item_id = i.id ORDER BY p.at LIMIT 1), 0),
			coalesce((SELECT p.price FROM price_point p WHERE p.item_id = i.id ORDER BY p.at LIMIT 1), 0),
			coalesce((SELECT p.price FROM price_point p WHERE p.item_id = i.id AND p.at <= $2 ORDER BY p.at DESC LIMIT 1), 0),
			coalesce((SELECT p.price FROM price_point p WHERE p.item_id = i.id AND p.at <= $3 ORDER BY p.at DESC LIMIT 1), 0),
			coalesce((SELECT min(p.price) FROM price_point p WHERE p.item_id = i.id AND p.at > $3), 0),
			coalesce((SELECT max(p.price) FROM price_point p WHERE p.item_id = i.id AND p.at > $3), 0)
		FROM item i WHERE i.id `+s.Dialect.OneOf(1), s.Dialect.EncodeIDs(items), db.Micros(day), db.Micros(week))
	return out, err
}
