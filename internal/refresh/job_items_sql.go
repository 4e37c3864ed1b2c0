package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
)

// All items of a batch are one row of refresh_batch_items: a job writes two rows per batch
// instead of two per item. The view refresh_item shows a row per item.

// Plan holds the items of a job before they are divided into batches.
type Plan struct {
	Due            map[int32]int64 // items to estimate, by game
	TTL, NoSales   int64           // skipped items
	total, pending int64
	ids            []int64 // of a missing-price job
	buckets        [catalog.Buckets]plannedBucket
}

// plannedBucket holds the items of a name bucket as JSON, without the brackets of the array.
type plannedBucket struct {
	planned, outcomes []byte
	pending           int64
}

// ReadPlan selects the items of a job by its rules.
func ReadPlan(t *db.Tx, r Rules) (*Plan, error) {
	p := &Plan{Due: map[int32]int64{}}
	from, args := planOf(t.Dialect, r)
	err := db.Each(t.Context(), t, func(rows *sql.Rows) error {
		var id int64
		var app int32
		var price money.Micro
		var skip string
		if err := rows.Scan(&id, &app, &price, &skip); err != nil {
			return err
		}
		p.add(id, app, price, skip)
		if r.Missing {
			p.ids = append(p.ids, id)
		}
		return nil
	}, `SELECT id, app_id, price, skip FROM (SELECT i.id, i.app_id, i.price, `+planState+` AS skip `+from+`) p ORDER BY id`, args...)
	return p, err
}

func (p *Plan) add(id int64, app int32, price money.Micro, skip string) {
	b := &p.buckets[id/bucketIDs]
	p.total++
	switch skip {
	case "":
		p.Due[app]++
		p.pending++
		b.pending++
		b.planned = appendNumbers(b.planned, id, int64(price))
		b.planned = append(b.planned, ']')
		return
	case SkipTTL:
		p.TTL++
	case SkipNoSales:
		p.NoSales++
	}
	b.outcomes = appendOutcome(b.outcomes, id, price, -1, ItemSkipped, skip, "")
}

const (
	batchItemColumns = "job_id bigint, batch bigint, planned text, outcomes text"
	openBatchColumns = "job_id bigint, batch bigint, pending bigint, state text"
)

var (
	batchItemsBulk = db.NewBulk(`INSERT INTO refresh_batch_items (job_id, batch, planned, outcomes) `, batchItemColumns, "")
	batchesBulk    = db.NewBulk(`INSERT INTO refresh_batch (job_id, batch, pending, state) `, openBatchColumns, "")
)

// Write stores the plan of a job, divided into the given number of batches.
func (p *Plan) Write(t *db.Tx, job int64, batches int) error {
	items, open := db.NewTable(batchItemColumns, batches), db.NewTable(openBatchColumns, batches)
	bucket := 0
	for batch := range batches {
		all := plannedBucket{planned: []byte("["), outcomes: []byte("[")}
		for ; bucket < catalog.Buckets && bucket*batches/catalog.Buckets == batch; bucket++ {
			b := &p.buckets[bucket]
			all.planned, all.outcomes = appendElements(all.planned, b.planned), appendElements(all.outcomes, b.outcomes)
			all.pending += b.pending
		}
		if len(all.planned) > 1 || len(all.outcomes) > 1 {
			items.Int(job, int64(batch))
			items.Text(string(append(all.planned, ']')), string(append(all.outcomes, ']')))
		}
		if all.pending > 0 {
			open.Int(job, int64(batch), all.pending)
			open.Text("pending")
		}
	}
	if _, err := t.WriteRows(batchItemsBulk, items); err != nil {
		return err
	}
	if _, err := t.WriteRows(batchesBulk, open); err != nil {
		return err
	}
	if _, err := t.Exec(`UPDATE refresh_job SET total = $2, skipped_ttl = $3, skipped_no_sales = $4 WHERE id = $1`,
		job, p.total, p.TTL, p.NoSales); err != nil || len(p.ids) == 0 {
		return err
	}
	_, err := t.Exec(`
		UPDATE missing_price SET job_id = $1 WHERE item_id IN (
			SELECT m.item_id FROM missing_price m WHERE m.item_id `+t.Dialect.OneOf(2)+`
			ORDER BY m.item_id`+t.Dialect.LockOf("m")+`)`, job, t.Dialect.EncodeIDs(p.ids))
	return err
}

// plannedItems returns the ids of the pending items of a batch. It reads the column instead of
// the view refresh_item, which would read the outcomes too.
func plannedItems(ctx context.Context, s *db.DB, b Batch) ([]int64, error) {
	var text []byte
	err := s.Read.QueryRowContext(ctx, `SELECT planned FROM refresh_batch_items WHERE job_id = $1 AND batch = $2`, b.JobID, b.Batch).Scan(&text)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	var planned [][2]int64 // id, price
	if err := json.Unmarshal(text, &planned); err != nil {
		return nil, fmt.Errorf("decode items of batch %d of job %d: %w", b.Batch, b.JobID, err)
	}
	ids := make([]int64, len(planned))
	for i := range planned {
		ids[i] = planned[i][0]
	}
	return ids, nil
}

// writeJobItems replaces the planned items of a batch by their outcomes. It stores the price
// before the estimate as read now, not as read by the plan. Another job may have changed the
// price in between, and applying by batch would then miss the change.
func writeJobItems(t *db.Tx, b Batch, items []EstimatedItem) error {
	const room = 48 // bytes of most outcomes
	out := make([]byte, 0, 2+room*len(items))
	for i := range items {
		p := &items[i]
		out = appendOutcome(out, p.ID, p.Price, p.PriceAfter(), p.State, p.Reason, p.Error)
	}
	failures, err := json.Marshal(batchFailures(items))
	if err != nil {
		return err
	}
	n, err := t.Exec(`
		UPDATE refresh_batch_items SET planned = '[]', failures = $4,
			outcomes = CASE WHEN outcomes = '[]' THEN '[' ELSE substr(outcomes, 1, length(outcomes) - 1) || ',' END || $3
		WHERE job_id = $1 AND batch = $2`, b.JobID, b.Batch, string(append(out, ']')), string(failures))
	if err == nil && n != 1 {
		err = fmt.Errorf("batch %d of job %d has no items", b.Batch, b.JobID)
	}
	return err
}

// Failure is an error of a batch with the number of items that failed with it.
type Failure struct {
	Error string  `json:"error"`
	Count int64   `json:"count"`
	Items []int64 `json:"items"` // ids of up to FailureSamples items with different names
}

// FailureSamples is the number of samples of a Failure.
const FailureSamples = 5

// batchFailures groups the failed items of a batch by error.
func batchFailures(items []EstimatedItem) []Failure {
	out := []Failure{}
	at, names := map[string]int{}, map[string][]string{}
	for i := range items {
		p := &items[i]
		if p.Error == "" {
			continue
		}
		k, found := at[p.Error]
		if !found {
			k, at[p.Error] = len(out), len(out)
			out = append(out, Failure{Error: p.Error})
		}
		out[k].Count++
		if len(out[k].Items) < FailureSamples && !slices.Contains(names[p.Error], p.Key.Name) {
			out[k].Items, names[p.Error] = append(out[k].Items, p.ID), append(names[p.Error], p.Key.Name)
		}
	}
	return out
}

func appendOutcome(b []byte, id int64, before, after money.Micro, state, reason, why string) []byte {
	b = appendNumbers(b, id, int64(before), int64(after))
	b = append(append(append(b, `,"`...), state...), '"')
	b = append(append(append(b, `,"`...), reason...), `",`...)
	b, _ = jsontext.AppendQuote(b, strings.ReplaceAll(why, "\x00", "")) // the error reports invalid UTF-8, which is replaced
	return append(b, ']')
}

// appendNumbers appends an array of numbers without its closing bracket.
func appendNumbers(b []byte, numbers ...int64) []byte {
	if len(b) > 0 && b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	b = append(b, '[')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return b
}

// appendElements appends the elements of an array to an array that has no closing bracket yet.
func appendElements(b, elements []byte) []byte {
	if len(b) > 1 && len(elements) > 0 {
		b = append(b, ',')
	}
	return append(b, elements...)
}
