package refresh

import (
	"database/sql"
	"errors"
	"slices"
	"time"

	"assay/internal/db"
)

// wantedNamesSQL selects the items of a job that are due and, if $3, those that only
// their TTL leaves out, with their value in inventories and when their names were last
// requested from the provider.
const wantedNamesSQL = `
SELECT i.id, i.app_id, i.name, r.batch, i.price, coalesce(v.amount, 0), coalesce(n.requested_at, 0), coalesce(m.queued_at, 0)
FROM refresh_item r JOIN item i ON i.id = r.item_id
	LEFT JOIN (SELECT item_id, CAST(sum(amount) AS BIGINT) AS amount FROM inventory
		WHERE item_id IN (SELECT item_id FROM refresh_item WHERE job_id = $1) GROUP BY item_id) v ON v.item_id = i.id
	LEFT JOIN background_name n ON n.provider = $2 AND n.app_id = i.app_id AND n.name = i.name
	LEFT JOIN missing_price m ON m.item_id = i.id
WHERE r.job_id = $1 AND (r.state = 'pending' OR $3 AND r.reason = 'ttl')
ORDER BY i.app_id, i.bucket, i.name, i.id`

// candidateNames lists the names of a job's due items, with fresh also of those
// that were left out for their TTL, by game, bucket and name: one for each item.
func candidateNames(t *db.Tx, job int64, provider string, fresh bool) ([]CandidateName, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, w *CandidateName) error {
		var asked, queued int64
		err := r.Scan(&w.Item, &w.AppID, &w.Name, &w.Batch, &w.Price, &w.Amount, &asked, &queued)
		w.AskedAt, w.QueuedAt = db.Moment(asked), db.Moment(queued)
		return err
	}, wantedNamesSQL, job, provider, fresh)
}

const (
	placeColumns  = "app_id bigint, job_id bigint, place bigint, urgent bigint, provider text, name text"
	placeNamesSQL = `INSERT INTO background_name (app_id, job_id, place, urgent, provider, name) `
	// A name may be urgent and have a place, which then is that of the bulk job.
	placeNamesConflict = `
ON CONFLICT (provider, app_id, name) DO UPDATE SET
	job_id = CASE WHEN excluded.place = 0 AND background_name.place <> 0 THEN background_name.job_id ELSE excluded.job_id END,
	place = CASE WHEN excluded.place = 0 THEN background_name.place ELSE excluded.place END,
	urgent = CASE WHEN background_name.urgent = 0 THEN excluded.urgent ELSE background_name.urgent END`
)

var placesBulk = db.NewBulk(placeNamesSQL, placeColumns, placeNamesConflict)

// placeNames plans what is requested from a provider in the background. A plan of all
// that matters takes over what the one before it left.
func placeNames(t *db.Tx, job int64, provider string, names []PlacedName, all bool) error {
	if all {
		if _, err := t.Exec(`UPDATE background_name SET place = 0 WHERE provider = $1 AND place <> 0 AND owner = ''`, provider); err != nil {
			return err
		}
	}
	rows := db.NewTable(placeColumns, len(names))
	for _, n := range names {
		rows.Int(int64(n.AppID), job, n.Place, db.Micros(n.Missing))
		rows.Text(provider, n.Name)
	}
	_, err := t.WriteRows(placesBulk, rows)
	return err
}

const (
	requestedColumns = "app_id bigint, requested_at bigint, provider text, name text"
	requestedNames   = `INSERT INTO background_name (app_id, requested_at, provider, name) `
	// In the order of the conflict's columns, so that no two wait for each other.
	requestedConflict = ` ON CONFLICT (provider, app_id, name) DO UPDATE SET requested_at = excluded.requested_at`
)

var requestedBulk = db.NewBulk(requestedNames, requestedColumns, requestedConflict)

// noteRequested notes that the names of a unit were requested from a provider.
func noteRequested(t *db.Tx, u Unit) error {
	rows := db.NewTable(requestedColumns, len(u.Names))
	for _, name := range u.Names {
		rows.Int(int64(u.AppID), db.Micros(u.FetchedAt))
		rows.Text(u.Provider, name)
	}
	_, err := t.WriteRows(requestedBulk, rows)
	return err
}

// Of the urgent names, those whose prices were found elsewhere are not urgent any
// more. A few at a time are looked at, the first of which is claimed next.
const calmNames = `
UPDATE background_name SET urgent = 0
WHERE (provider, app_id, name) IN (
	SELECT f.provider, f.app_id, f.name FROM (
		SELECT provider, app_id, name FROM background_name WHERE provider = $1 AND urgent <> 0 AND owner = '' ORDER BY urgent LIMIT 100) f
	WHERE NOT EXISTS (
		SELECT 1 FROM item i JOIN missing_price m ON m.item_id = i.id WHERE i.app_id = f.app_id AND i.name = f.name))`

// What the same owner is still said to hold was lost by it: it asks for one name
// of a provider at a time.
const (
	claimSlowSQL = `
UPDATE background_name SET owner = $2, token = token + 1, started_at = $3
WHERE (provider, app_id, name) = (
	SELECT s.provider, s.app_id, s.name FROM background_name s
	WHERE s.provider = $1 AND s.owner IN ('', $2)
	AND NOT EXISTS (SELECT 1 FROM provider_state p WHERE p.provider = $1 AND p.paused)`
	claimUrgent = claimSlowSQL + ` AND s.urgent <> 0 ORDER BY s.urgent, s.app_id, s.name LIMIT 1`
	claimPlaced = claimSlowSQL + ` AND s.place <> 0 ORDER BY s.place, s.app_id, s.name LIMIT 1`
)

// claimBackground claims the name that is to be requested next from a provider in the
// background, or returns nil. Of a paused provider there is none.
func claimBackground(t *db.Tx, provider, owner string) (*BackgroundName, error) {
	if _, err := t.Exec(calmNames, provider); err != nil {
		return nil, err
	}
	n, err := claimNextBackground(t, claimUrgent+t.Dialect.SkipLocked("s")+`)
RETURNING app_id, name, job_id, token`, provider, owner)
	if err != nil || n != nil {
		return n, err
	}
	return claimNextBackground(t, claimPlaced+t.Dialect.SkipLocked("s")+`)
RETURNING app_id, name, job_id, token`, provider, owner)
}

func claimNextBackground(t *db.Tx, query, provider, owner string) (*BackgroundName, error) {
	n := BackgroundName{Provider: provider, Owner: owner}
	err := t.QueryRow(query, provider, owner, db.Micros(t.Now())).Scan(&n.AppID, &n.Name, &n.JobID, &n.Token)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &n, err
}

// laterUnit is the unit by which a job counts what is requested from a provider in the
// background.
const laterUnit = ` WHERE job_id = $1 AND provider = $2 AND app_id = $3 AND file = '' AND state = 'deferred'`

// reserveBackground counts a request for a claimed name with the job that planned it,
// before it is sent. It returns false, and counts nothing, where the claim is no
// longer valid, or the provider is paused.
func reserveBackground(t *db.Tx, n BackgroundName) (bool, error) {
	held, err := t.Exec(`
		UPDATE background_name SET token = token
		WHERE provider = $1 AND app_id = $2 AND name = $3 AND token = $4 AND owner = $5
		AND NOT EXISTS (SELECT 1 FROM provider_state p WHERE p.provider = $1 AND p.paused)`,
		n.Provider, n.AppID, n.Name, n.Token, n.Owner)
	if err != nil || held != 1 {
		return false, err
	}
	_, err = t.Exec(`UPDATE fetch_unit SET requests = requests + 1`+laterUnit, n.JobID, n.Provider, n.AppID)
	return true, err
}

// returnBackground gives a name back.
func returnBackground(t *db.Tx, n BackgroundName) error {
	_, err := t.Exec(`UPDATE background_name SET owner = '' WHERE provider = $1 AND app_id = $2 AND name = $3 AND token = $4 AND owner = $5`,
		n.Provider, n.AppID, n.Name, n.Token, n.Owner)
	return err
}

// endBackground notes that a name was requested from a provider, what that cost, and the quotes
// of each market. It returns false, and writes nothing, if the claim is no longer valid.
func endBackground(t *db.Tx, n BackgroundName, markets []MarketFetch) (bool, error) {
	ended, err := t.Exec(`
		UPDATE background_name SET owner = '', place = 0, urgent = 0, requested_at = $6
		WHERE provider = $1 AND app_id = $2 AND name = $3 AND token = $4 AND owner = $5`,
		n.Provider, n.AppID, n.Name, n.Token, n.Owner, db.Micros(t.Now()))
	if err != nil || ended != 1 {
		return false, err
	}
	counted, err := t.Exec(`UPDATE fetch_unit SET size = size - 1, bytes = bytes + $4`+laterUnit+` AND size > 0`,
		n.JobID, n.Provider, n.AppID, n.Bytes)
	if err != nil || counted != 1 {
		return true, err // the job is removed already
	}
	return true, addFetches(t, Unit{JobID: n.JobID, FetchedAt: t.Now(), Requests: n.Requests, Bytes: n.Bytes}, markets)
}

// gather is how long missing prices wait for others like them, so that one job
// estimates what comes in a burst.
const gather = 10 * time.Second

// NamedItems returns the items of names, by id.
func NamedItems(t *db.Tx, app int32, names []string) ([]NamedItem, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, i *NamedItem) error {
		var quotes string
		err := r.Scan(&i.ID, &i.Name, &i.Phase, &i.Rev, &quotes)
		if err == nil {
			i.Quotes, err = DecodeQuotes(quotes)
		}
		return err
	}, `SELECT i.id, i.name, i.phase, i.rev, coalesce(q.quotes, '') FROM item i LEFT JOIN item_quotes q ON q.item_id = i.id
		WHERE i.app_id = $1 AND i.name IN `+t.Dialect.Texts(2)+` ORDER BY i.id`, app, t.Dialect.PackTexts(names))
}

// KeepQuotes writes the quotes of items, unless one of these was estimated since it was
// read: then the transaction runs again. Items that wait for a price are due soon. As in
// Estimate, the items come after their quotes.
func KeepQuotes(t *db.Tx, items []NamedItem) error {
	rows, ids := make([]itemQuotes, len(items)), make([]int64, len(items))
	for i := range items {
		rows[i], ids[i] = itemQuotes{items[i].ID, items[i].Quotes}, items[i].ID
	}
	if err := keepQuotes(t, rows); err != nil {
		return err
	}
	revs, err := db.Collect(t.Context(), t, func(r *sql.Rows, rev *int64) error { return r.Scan(rev) },
		`SELECT rev FROM item WHERE id IN `+t.Dialect.IDs(1)+` ORDER BY id`+t.Dialect.Lock(), t.Dialect.PackIDs(ids))
	if err != nil {
		return err
	}
	if !slices.EqualFunc(items, revs, func(i NamedItem, rev int64) bool { return i.Rev == rev }) {
		return db.ErrRunAgain
	}
	if _, err := t.Exec(`UPDATE item SET rev = rev + 1 WHERE id IN `+t.Dialect.IDs(1), t.Dialect.PackIDs(ids)); err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE missing_price SET due_at = $2 WHERE job_id = 0 AND due_at > $2 AND item_id IN `+t.Dialect.IDs(1),
		t.Dialect.PackIDs(ids), db.Micros(t.Now().Add(gather)))
	return err
}
