package view

import (
	"context"
	"database/sql"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
)

// Causes groups the failed items of the jobs by error, most frequent first. It returns at most
// the given number of causes, and the number of items that failed for the remaining causes.
func Causes(ctx context.Context, s *db.DB, jobs []int64, most int) (causes []FailureReason, others int64, err error) {
	var all int64
	causes, err = db.Collect(ctx, s.Read, func(r *sql.Rows, c *FailureReason) error {
		c.SampleNames = []string{}
		return r.Scan(&c.Cause, &c.Count, &all)
	}, `
		SELECT error, count(*), CAST(sum(count(*)) OVER () AS BIGINT) FROM refresh_item
		WHERE job_id IN `+s.Dialect.IDs(1)+` AND state IN ('failed', 'noQuote') AND error <> ''
		GROUP BY error ORDER BY count(*) DESC, error LIMIT $2`, s.Dialect.PackIDs(jobs), most)
	if err != nil || len(causes) == 0 {
		return nil, 0, err
	}
	texts, at := make([]string, len(causes)), make(map[string]int, len(causes))
	for i := range causes {
		texts[i], at[causes[i].Cause] = causes[i].Cause, i
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
	// samplesRead is the number of items read per cause. It exceeds samplesKept because
	// several items can have the same name: phases, or an item that failed in several jobs.
	samplesRead = 40
	// samplesKept is the number of samples kept per cause.
	samplesKept = 5
)

// add keeps the item as a sample unless a sample has the same name.
func (c *FailureReason) add(key catalog.Key) {
	if len(c.Items) < samplesKept && !slices.Contains(c.SampleNames, key.Name) {
		c.Items = append(c.Items, key)
		c.SampleNames = append(c.SampleNames, key.Name)
	}
}
