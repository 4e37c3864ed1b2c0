package view

import (
	"context"
	"database/sql"

	"assay/internal/catalog"
	"assay/internal/db"
)

// Cause groups failed items by what went wrong.
type Cause struct {
	Error string
	Count int64         // of all items that failed so
	Items []catalog.Key // some of them, with different names
}

// Causes groups all failed items of the jobs by error, the most frequent first, up to
// a limit. It also returns how many items failed for the causes beyond that.
func Causes(ctx context.Context, s *db.DB, jobs []int64, most int) (causes []Cause, others int64, err error) {
	var all int64
	causes, err = db.Collect(ctx, s.Read, func(r *sql.Rows, c *Cause) error { return r.Scan(&c.Error, &c.Count, &all) }, `
		SELECT error, count(*), CAST(sum(count(*)) OVER () AS BIGINT) FROM refresh_item
		WHERE job_id IN `+s.Dialect.IDs(1)+` AND state IN ('failed', 'noQuote') AND error <> ''
		GROUP BY error ORDER BY count(*) DESC, error LIMIT $2`, s.Dialect.PackIDs(jobs), most)
	if err != nil || len(causes) == 0 {
		return nil, 0, err
	}
	texts, at := make([]string, len(causes)), make(map[string]int, len(causes))
	for i := range causes {
		texts[i], at[causes[i].Error] = causes[i].Error, i
		all -= causes[i].Count
	}
	type sample struct {
		error string
		key   catalog.Key
	}
	samples, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *sample) error {
		return r.Scan(&v.error, &v.key.AppID, &v.key.Name, &v.key.Phase)
	}, causeSamples+s.Dialect.IDs(1)+` AND state IN ('failed', 'noQuote') AND error IN `+s.Dialect.Texts(2)+`) r
		JOIN item i ON i.id = r.item_id WHERE r.place <= $3 ORDER BY r.place, i.name, i.phase`,
		s.Dialect.PackIDs(jobs), s.Dialect.PackTexts(texts), samplesRead)
	for _, v := range samples {
		causes[at[v.error]].add(v.key)
	}
	return causes, all, err
}

const (
	causeSamples = `
SELECT r.error, i.app_id, i.name, i.phase FROM (
	SELECT error, item_id, row_number() OVER (PARTITION BY error ORDER BY item_id) AS place
	FROM refresh_item WHERE job_id IN `
	// samplesRead is how many items of a cause are looked at: phases have the same
	// name, and so has an item that failed in several jobs.
	samplesRead = 40
	// samplesKept is how many of them are kept.
	samplesKept = 5
)

// add keeps an item as a sample, unless its name is among the samples.
func (c *Cause) add(key catalog.Key) {
	for _, have := range c.Items {
		if have.Name == key.Name {
			return
		}
	}
	if len(c.Items) < samplesKept {
		c.Items = append(c.Items, key)
	}
}
