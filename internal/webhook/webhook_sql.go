package webhook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"assay/internal/auditlog"
	"assay/internal/db"
	"assay/internal/fault"
)

const columns = `id, url, format, filter, disabled, secret, old_secret, old_secret_until, cursor, attempts,
	failing_since, next_at, tried_at, delivered_at, last_error, token, revision, created_at`

func scan(r *sql.Rows, h *Webhook) error {
	var filter string
	var until, failing, next, tried, delivered, created int64
	err := r.Scan(&h.ID, &h.URL, &h.Format, &filter, &h.Disabled, &h.secret, &h.oldSecret, &until, &h.Cursor, &h.Attempts,
		&failing, &next, &tried, &delivered, &h.LastError, &h.token, &h.revision, &created)
	if err != nil {
		return err
	}
	h.OldSecretUntil, h.FailingSince, h.NextAt = db.Moment(until), db.Moment(failing), db.Moment(next)
	h.TriedAt, h.DeliveredAt, h.CreatedAt = db.Moment(tried), db.Moment(delivered), db.Moment(created)
	if err := json.Unmarshal([]byte(filter), &h.Filter); err != nil {
		return fmt.Errorf("filter of webhook %d: %w", h.ID, err)
	}
	return nil
}

// insert stores a webhook. Its cursor is the number of the last event.
func insert(t *db.Tx, h Webhook) (id int64, err error) {
	filter, err := json.Marshal(h.Filter)
	if err != nil {
		return 0, err
	}
	var number int64
	if err := t.QueryRow(`SELECT count(*) FROM webhook`).Scan(&number); err != nil {
		return 0, err
	}
	if number >= MaxWebhooks {
		return 0, fault.New(fault.Conflict, "too_many_webhooks", "There are already %d webhooks, which is the maximum. Delete one first.", number)
	}
	err = t.QueryRow(`
		INSERT INTO webhook (url, format, filter, disabled, secret, old_secret, old_secret_until, cursor, attempts,
			failing_since, next_at, tried_at, delivered_at, last_error, owner, token, revision, created_at)
		VALUES ($1, $2, $3, '', $4, '', 0, coalesce((SELECT last FROM event_feed WHERE id = 1), 0), 0, 0, 0, 0, 0, '', '', 0, 0, $5) RETURNING id`,
		h.URL, string(h.Format), string(filter), h.secret, db.Micros(t.Now())).Scan(&id)
	auditlog.Created(t, strconv.FormatInt(id, 10))
	return id, err
}

// lock returns a webhook and locks its row.
func lock(t *db.Tx, id int64) (*Webhook, error) {
	h, err := db.First(db.Collect(t.Context(), t, scan, `SELECT `+columns+` FROM webhook WHERE id = $1`+t.Dialect.Lock(), id))
	if err == nil && h == nil {
		err = notFound()
	}
	return h, err
}

// update stores the settings of a locked webhook and makes it due.
func update(t *db.Tx, h *Webhook) error {
	filter, err := json.Marshal(h.Filter)
	if err != nil {
		return err
	}
	_, err = t.Exec(`
		UPDATE webhook SET url = $2, filter = $3, disabled = $4, secret = $5, old_secret = $6, old_secret_until = $7,
			attempts = 0, failing_since = 0, next_at = 0, revision = revision + 1 WHERE id = $1`,
		h.ID, h.URL, string(filter), h.Disabled, h.secret, h.oldSecret, db.Micros(h.OldSecretUntil))
	return err
}

func remove(t *db.Tx, id int64) error {
	n, err := t.Exec(`DELETE FROM webhook WHERE id = $1`, id)
	if err == nil && n == 0 {
		err = notFound()
	}
	if err != nil {
		return err
	}
	_, err = t.Exec(`DELETE FROM webhook_delivery WHERE webhook_id = $1`, id)
	return err
}

// find returns a webhook, or nil.
func find(ctx context.Context, q db.Querier, id int64) (*Webhook, error) {
	return db.First(db.Collect(ctx, q, scan, `SELECT `+columns+` FROM webhook WHERE id = $1`, id))
}

func list(ctx context.Context, s *db.DB) ([]Webhook, error) {
	return db.Collect(ctx, s.Read, scan, `SELECT `+columns+` FROM webhook ORDER BY id`)
}

// unclaimed selects webhooks that no other running instance has claimed. $2 is the name of this
// instance, which tracks its own claims in memory.
const unclaimed = `(w.owner IN ('', $2) OR NOT EXISTS (SELECT 1 FROM instance i WHERE i.owner = w.owner))`

// due returns the enabled webhooks with events to send, the least recently tried first. exist is
// false if no webhook is enabled. A webhook whose next_at is further ahead than the longest wait
// is due, because the clock was set back.
func due(ctx context.Context, s *db.DB, owner string, last int64) (ids []int64, exist bool, err error) {
	now := s.Clock()
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id int64
		var ready bool
		if err := r.Scan(&id, &ready); err != nil {
			return err
		}
		if exist = true; ready {
			ids = append(ids, id)
		}
		return nil
	}, `SELECT w.id, w.cursor < $1 AND (w.next_at <= $3 OR w.next_at > $4) AND `+unclaimed+`
		FROM webhook w WHERE w.disabled = '' ORDER BY w.tried_at, w.id`, last, owner, db.Micros(now), db.Micros(now.Add(maxRetryAfter)))
	return ids, exist, err
}

// claim claims a webhook, so that only the instance owner sends its events. It returns nil if
// another instance has claimed the webhook, or if the webhook is disabled.
func claim(t *db.Tx, id int64, owner string) (*Webhook, error) {
	n, err := t.Exec(`UPDATE webhook AS w SET owner = $2, token = w.token + 1 WHERE w.id = $1 AND w.disabled = '' AND `+unclaimed, id, owner)
	if err != nil || n == 0 {
		return nil, err
	}
	return find(t.Context(), t, id)
}

// release ends a claim.
func release(t *db.Tx, h *Webhook) error {
	_, err := t.Exec(`UPDATE webhook SET owner = '' WHERE id = $1 AND token = $2`, h.ID, h.token)
	return err
}

// errClaimLost means that another instance sends for the webhook now, or that the webhook was
// changed or deleted.
var errClaimLost = errors.New("claim lost")

// moveCursor stores the cursor of a claimed webhook.
func moveCursor(t *db.Tx, h *Webhook) error {
	n, err := t.Exec(`UPDATE webhook SET cursor = $3 WHERE id = $1 AND token = $2 AND revision = $4`, h.ID, h.token, h.Cursor, h.revision)
	if err == nil && n == 0 {
		err = errClaimLost
	}
	return err
}

// storeAttempt stores the state of a claimed webhook after an attempt.
func storeAttempt(t *db.Tx, h *Webhook) error {
	n, err := t.Exec(`
		UPDATE webhook SET cursor = $3, attempts = $5, failing_since = $6, next_at = $7, tried_at = $8, delivered_at = $9, last_error = $10, disabled = $11
		WHERE id = $1 AND token = $2 AND revision = $4`,
		h.ID, h.token, h.Cursor, h.revision, h.Attempts, db.Micros(h.FailingSince), db.Micros(h.NextAt), db.Micros(h.TriedAt), db.Micros(h.DeliveredAt),
		h.LastError, h.Disabled)
	if err == nil && n == 0 {
		err = errClaimLost
	}
	return err
}

// putDelivery stores the state of a message. It adds d.Attempts to the stored number of
// attempts.
func putDelivery(t *db.Tx, webhook int64, d *Delivery) error {
	_, err := t.Exec(`
		INSERT INTO webhook_delivery (webhook_id, number, first, kind, state, attempts, status, duration, error, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (webhook_id, number) DO UPDATE SET first = excluded.first, state = excluded.state, attempts = webhook_delivery.attempts + excluded.attempts,
			status = excluded.status, duration = excluded.duration, error = excluded.error, at = excluded.at`,
		webhook, d.Number, d.First, string(d.Kind), d.State, d.Attempts, d.Status, d.Duration.Microseconds(), d.Error, db.Micros(t.Now()))
	return err
}

// putLost stores that events up to a number were lost. It returns false if that is already
// stored.
func putLost(t *db.Tx, webhook, number int64) (bool, error) {
	n, err := t.Exec(`
		INSERT INTO webhook_delivery (webhook_id, number, first, kind, state, attempts, status, duration, error, at)
		VALUES ($1, $2, $2, '', $3, 0, 0, 0, 'events up to this number expired before they could be sent', $4) ON CONFLICT (webhook_id, number) DO NOTHING`,
		webhook, number, Lost, db.Micros(t.Now()))
	return n > 0, err
}

// abandon stores that a message was abandoned.
func abandon(t *db.Tx, webhook int64, d *Delivery) error {
	n, err := t.Exec(`UPDATE webhook_delivery SET state = $3 WHERE webhook_id = $1 AND number = $2`, webhook, d.Number, Failed)
	if err != nil || n > 0 {
		return err
	}
	d.State, d.Error = Failed, "not sent: the receiver has failed for a day"
	return putDelivery(t, webhook, d)
}

// recordResent stores the outcome of a message that an operator sent again. If the webhook waited to
// retry it, an accepted message ends the wait, and the webhook continues with the next one.
func recordResent(t *db.Tx, webhook, number int64, out Outcome) error {
	accepted, now := 0, db.Micros(t.Now())
	if out.Error == "" {
		accepted = 1
	}
	_, err := t.Exec(`
		UPDATE webhook_delivery SET attempts = attempts + 1, status = $3, duration = $4, error = $5, at = $6,
			state = CASE WHEN $7 = 1 THEN $8 ELSE state END
		WHERE webhook_id = $1 AND number = $2`,
		webhook, number, out.Status, out.Duration.Microseconds(), out.Error, now, accepted, Delivered)
	if err != nil || accepted == 0 {
		return err
	}
	_, err = t.Exec(`
		UPDATE webhook SET cursor = $2, attempts = 0, failing_since = 0, next_at = 0, tried_at = $3, delivered_at = $3, last_error = '', revision = revision + 1
		WHERE id = $1 AND attempts > 0 AND cursor < $2`, webhook, number, now)
	return err
}

const (
	// keptDeliveries limits the stored messages of a webhook.
	keptDeliveries = 500
	deliveryAge    = 7 * 24 * time.Hour
)

// prune deletes old messages of a webhook.
func prune(t *db.Tx, webhook int64) error {
	_, err := t.Exec(`
		DELETE FROM webhook_delivery WHERE webhook_id = $1 AND (at < $2 OR number <= (
			SELECT number FROM webhook_delivery WHERE webhook_id = $1 ORDER BY number DESC LIMIT 1 OFFSET $3))`,
		webhook, db.Micros(t.Now().Add(-deliveryAge)), keptDeliveries)
	return err
}

func scanDelivery(r *sql.Rows, d *Delivery) error {
	var duration, at int64
	err := r.Scan(&d.Number, &d.First, &d.Kind, &d.State, &d.Attempts, &d.Status, &duration, &d.Error, &at)
	d.Duration, d.At = time.Duration(duration)*time.Microsecond, db.Moment(at)
	return err
}

const deliveryColumns = `number, first, kind, state, attempts, status, duration, error, at`

func deliveries(ctx context.Context, s *db.DB, webhook, before int64, limit int) ([]Delivery, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return db.Collect(ctx, s.Read, scanDelivery, `SELECT `+deliveryColumns+` FROM webhook_delivery WHERE webhook_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3`,
		webhook, before, limit)
}

func findDelivery(ctx context.Context, s *db.DB, webhook, number int64) (*Delivery, error) {
	return db.First(db.Collect(ctx, s.Read, scanDelivery, `SELECT `+deliveryColumns+` FROM webhook_delivery WHERE webhook_id = $1 AND number = $2`, webhook, number))
}
