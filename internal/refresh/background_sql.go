package refresh

import (
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"assay/internal/db"
)

// candidateNamesSQL selects the due items of a job with their value in inventories and the
// time of the last request for their names. If $3 is set, it also selects the items within
// their TTL. It joins as dueNames.
const candidateNamesSQL = `
SELECT i.id, i.app_id, i.name, r.batch, i.price, coalesce(v.amount, 0), coalesce(n.requested_at, 0), coalesce(m.queued_at, 0)
FROM refresh_item r CROSS JOIN item i
	LEFT JOIN (SELECT item_id, CAST(sum(amount) AS BIGINT) AS amount FROM inventory
		WHERE item_id IN (SELECT item_id FROM refresh_item WHERE job_id = $1) GROUP BY item_id) v ON v.item_id = i.id
	LEFT JOIN background_name n ON n.provider = $2 AND n.app_id = i.app_id AND n.name = i.name
	LEFT JOIN missing_price m ON m.item_id = i.id
WHERE i.id = r.item_id AND r.job_id = $1 AND (r.state = 'pending' OR $3 AND r.reason = 'ttl')
ORDER BY i.app_id, i.bucket, i.name, i.id`

// candidateNames returns the items of a job that a provider can be queried for, ordered by
// game, bucket and name. With fresh it includes items within their TTL.
func candidateNames(t *db.Tx, job int64, provider string, fresh bool) ([]CandidateName, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, w *CandidateName) error {
		var requested, queued int64
		err := r.Scan(&w.Item, &w.AppID, &w.Name, &w.Batch, &w.Price, &w.Amount, &requested, &queued)
		w.RequestedAt, w.QueuedAt = db.Moment(requested), db.Moment(queued)
		return err
	}, candidateNamesSQL, job, provider, fresh)
}

const (
	rankColumns  = "app_id bigint, job_id bigint, rank bigint, missing_since bigint, provider text, name text"
	rankNamesSQL = `INSERT INTO background_name (app_id, job_id, rank, missing_since, provider, name) `
	// A name can have a missing price and also a rank. It then belongs to the bulk job.
	rankNamesConflict = `
ON CONFLICT (provider, app_id, name) DO UPDATE SET
	job_id = CASE WHEN excluded.rank = 0 AND background_name.rank <> 0 THEN background_name.job_id ELSE excluded.job_id END,
	rank = CASE WHEN excluded.rank = 0 THEN background_name.rank ELSE excluded.rank END,
	missing_since = CASE WHEN background_name.missing_since = 0 THEN excluded.missing_since ELSE background_name.missing_since END`
)

var ranksBulk = db.NewBulk(rankNamesSQL, rankColumns, rankNamesConflict)

// storeRanking stores the order in which the background fetch requests names. If all is set,
// the order replaces the stored order. Otherwise storeRanking adds the names to it.
func storeRanking(t *db.Tx, job int64, provider string, names []BackgroundName, all bool) error {
	if all {
		if _, err := t.Exec(`UPDATE background_name SET rank = 0 WHERE provider = $1 AND rank <> 0`, provider); err != nil {
			return err
		}
	}
	rows := db.NewTable(rankColumns, len(names))
	for _, n := range names {
		rows.Int(int64(n.AppID), job, n.Rank, db.Micros(n.Missing))
		rows.Text(provider, n.Name)
	}
	_, err := t.WriteRows(ranksBulk, rows)
	return err
}

const (
	requestedColumns = "app_id bigint, requested_at bigint, provider text, name text"
	requestedNames   = `INSERT INTO background_name (app_id, requested_at, provider, name) `
	// Rows are written in key order to prevent deadlocks.
	requestedConflict = ` ON CONFLICT (provider, app_id, name) DO UPDATE SET requested_at = excluded.requested_at`
)

var requestedBulk = db.NewBulk(requestedNames, requestedColumns, requestedConflict)

// noteRequested stores that a provider was queried for the names of a unit.
func noteRequested(t *db.Tx, u FetchUnit) error {
	rows := db.NewTable(requestedColumns, len(u.Names))
	for _, name := range u.Names {
		rows.Int(int64(u.AppID), db.Micros(u.FetchedAt))
		rows.Text(u.Provider, name)
	}
	_, err := t.WriteRows(requestedBulk, rows)
	return err
}

// clearMissing clears missing_since of names that have a price now. It checks only the first
// 100 rows, because claimName needs only the first name without a price.
const clearMissing = `
UPDATE background_name SET missing_since = 0
WHERE (provider, app_id, name) IN (
	SELECT f.provider, f.app_id, f.name FROM (
		SELECT provider, app_id, name FROM background_name WHERE provider = $1 AND missing_since <> 0 ORDER BY missing_since LIMIT 100) f
	WHERE NOT EXISTS (
		SELECT 1 FROM item i JOIN missing_price m ON m.item_id = i.id WHERE i.app_id = f.app_id AND i.name = f.name))`

// nextName selects the next name without an open unit. A name with an open unit is being
// requested.
const (
	nextName = `
SELECT s.app_id, s.name, s.job_id FROM background_name s
WHERE s.provider = $1 AND NOT EXISTS (SELECT 1 FROM fetch_unit u WHERE u.id = s.unit_id AND u.state IN ('pending', 'running'))
AND NOT EXISTS (SELECT 1 FROM provider_state p WHERE p.provider = $1 AND p.paused)`
	nextMissing = nextName + ` AND s.missing_since <> 0 ORDER BY s.missing_since, s.app_id, s.name LIMIT 1`
	nextRanked  = nextName + ` AND s.rank <> 0 ORDER BY s.rank, s.app_id, s.name LIMIT 1`
)

// claimName creates a claimed unit of the next name in the background. It returns nil if
// there is no name or the provider is paused.
func claimName(t *db.Tx, c Claim) (*FetchUnit, error) {
	if _, err := t.Exec(clearMissing, c.Provider); err != nil {
		return nil, err
	}
	u := FetchUnit{
		Provider: c.Provider, Size: 1, BatchFrom: 1, State: UnitRunning, Token: 1, Attempts: 1,
		Reserved: c.Reserve, Detached: true, Background: true,
	}
	var name string
	for _, query := range []string{nextMissing, nextRanked} {
		found, err := db.Found(t.QueryRow(query+t.Dialect.SkipLocked("s"), c.Provider).Scan(&u.AppID, &name, &u.JobID))
		if err != nil {
			return nil, err
		}
		if found {
			break
		}
	}
	if name == "" {
		return nil, nil
	}
	u.Names = []string{name}
	names, err := json.Marshal(u.Names)
	if err != nil {
		return nil, err
	}
	// No batch waits for the unit: a range from 1 to 0 is empty.
	err = t.QueryRow(`
		INSERT INTO fetch_unit (job_id, provider, app_id, file, names, size, batch_from, batch_to, state, owner, token, attempts, started_at, reserved, detached)
		VALUES ($1, $2, $3, '', $4, 1, 1, 0, 'running', $5, 1, 1, $6, $7, `+DetachedBackgroundSQL+`) RETURNING id`,
		u.JobID, u.Provider, u.AppID, names, c.Owner, db.Micros(t.Now()), u.Reserved).Scan(&u.ID)
	if err != nil {
		return nil, err
	}
	// Another transaction may have created a unit of the name since the query above. A
	// separate statement reads that unit.
	n, err := t.Exec(`UPDATE background_name SET unit_id = $4 WHERE provider = $1 AND app_id = $2 AND name = $3
		AND NOT EXISTS (SELECT 1 FROM fetch_unit u WHERE u.id = background_name.unit_id AND u.state IN ('pending', 'running'))`, u.Provider, u.AppID, name, u.ID)
	if err == nil && n == 0 {
		err = db.ErrRunAgain
	}
	if err != nil {
		return nil, err
	}
	return &u, nil
}

// laterUnit selects the unit of a job that counts the requests of the background fetch.
const laterUnit = ` WHERE job_id = $1 AND provider = $2 AND app_id = $3 AND file = '' AND state = 'deferred'`

// endName deletes the unit of a name in the background, and adds its cost to the counts of
// its job. With keepRank the name keeps its rank. Otherwise endName stores the request time
// and the counts of each market. If the claim is no longer valid, it stores only the cost and
// returns false.
func endName(t *db.Tx, u FetchUnit, keepRank bool, markets []MarketFetch) (bool, error) {
	var requests int64
	err := t.QueryRow(`DELETE FROM fetch_unit WHERE id = $1 AND token = $2 AND state = 'running' RETURNING requests`, u.ID, u.Token).Scan(&requests)
	if found, err := db.Found(err); err != nil {
		return false, err
	} else if !found {
		return false, spend(t, u)
	}
	ended := int64(1)
	if keepRank {
		ended = 0
	}
	counted, err := t.Exec(`UPDATE fetch_unit SET requests = requests + $4, bytes = bytes + $5, size = size - CASE WHEN size > 0 THEN CAST($6 AS BIGINT) ELSE 0 END`+laterUnit,
		u.JobID, u.Provider, u.AppID, requests+uncounted(&u), u.Bytes, ended)
	if err != nil {
		return false, err
	}
	if keepRank {
		_, err = t.Exec(`UPDATE background_name SET unit_id = 0 WHERE unit_id = $1`, u.ID)
		return true, err
	}
	if _, err := t.Exec(`UPDATE background_name SET unit_id = 0, rank = 0, missing_since = 0, requested_at = $2 WHERE unit_id = $1`, u.ID, db.Micros(t.Now())); err != nil {
		return false, err
	}
	if counted != 1 {
		return true, nil // the job has been deleted
	}
	return true, addFetches(t, FetchUnit{JobID: u.JobID, FetchedAt: t.Now(), Requests: u.Requests, Bytes: u.Bytes}, markets)
}

// missingDelay is how long a missing price with a new quote waits for others, so that one job
// estimates all of them.
const missingDelay = 10 * time.Second

// namedItems returns the items of some names, ordered by id.
func namedItems(t *db.Tx, app int32, names []string) ([]NamedItem, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, i *NamedItem) error {
		var quotes string
		err := r.Scan(&i.ID, &i.Name, &i.Phase, &i.Rev, &quotes)
		if err == nil {
			i.Quotes, err = DecodeQuotes(quotes)
		}
		return err
	}, `SELECT i.id, i.name, i.phase, i.rev, coalesce(q.quotes, '') FROM item i LEFT JOIN item_quotes q ON q.item_id = i.id
		WHERE i.app_id = $1 AND i.name IN `+t.Dialect.Texts(2)+` ORDER BY i.id`, app, t.Dialect.EncodeTexts(names))
}

// writeNamedQuotes writes the quotes of items. If one of the items has been estimated since
// it was read, the transaction runs again. Items that wait for a price become due soon.
// Quotes are written before items, as in StoreEstimates.
func writeNamedQuotes(t *db.Tx, items []NamedItem) error {
	rows, ids := make([]itemQuotes, len(items)), make([]int64, len(items))
	for i := range items {
		rows[i], ids[i] = itemQuotes{items[i].ID, items[i].Quotes}, items[i].ID
	}
	if err := writeQuoteRows(t, rows); err != nil {
		return err
	}
	revs, err := db.Collect(t.Context(), t, func(r *sql.Rows, rev *int64) error { return r.Scan(rev) },
		`SELECT rev FROM item WHERE id `+t.Dialect.OneOf(1)+` ORDER BY id`+t.Dialect.Lock(), t.Dialect.EncodeIDs(ids))
	if err != nil {
		return err
	}
	if !slices.EqualFunc(items, revs, func(i NamedItem, rev int64) bool { return i.Rev == rev }) {
		return db.ErrRunAgain
	}
	if _, err := t.Exec(`UPDATE item SET rev = rev + 1 WHERE id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(ids)); err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE missing_price SET due_at = $2 WHERE job_id = 0 AND due_at > $2 AND item_id `+t.Dialect.OneOf(1),
		t.Dialect.EncodeIDs(ids), db.Micros(t.Now().Add(missingDelay)))
	return err
}
