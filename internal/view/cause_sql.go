package view

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/refresh"
)

// Causes groups the failed items of the jobs by error, most frequent first. It leaves out the first
// skip causes, and returns at most the given number. It also returns the number of items that failed
// for the causes that follow.
func Causes(ctx context.Context, s *db.DB, jobs []int64, skip, most int) (causes []FailureReason, others int64, err error) {
	causes, samples, err := allCauses(ctx, s, jobs)
	causes = causes[min(skip, len(causes)):]
	if err != nil || len(causes) == 0 {
		return nil, 0, err
	}
	for _, c := range causes[min(most, len(causes)):] {
		others += c.Count
	}
	causes = causes[:min(most, len(causes))]
	return causes, others, addSamples(ctx, s, causes, samples)
}

// Retries returns the last job that retried the failed items of a job, by error. The key "" stands
// for all errors.
func (r *JobReader) Retries(ctx context.Context, id int64) (map[string]int64, error) {
	out := map[string]int64{}
	err := db.Each(ctx, r.o.Store.Read, func(rows *sql.Rows) error {
		var cause string
		var job int64
		err := rows.Scan(&cause, &job)
		out[cause] = job
		return err
	}, `SELECT retry_cause, max(id) FROM refresh_job WHERE retry_of = $1 GROUP BY retry_cause`, id)
	return out, err
}

// allCauses returns all causes without samples, and the ids of the sample items by cause.
func allCauses(ctx context.Context, s *db.DB, jobs []int64) (causes []FailureReason, samples map[string][]int64, err error) {
	at := map[string]int{}
	samples = map[string][]int64{}
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var text string
		var failures []refresh.Failure
		if err := r.Scan(&text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &failures); err != nil {
			return err
		}
		for _, f := range failures {
			k, found := at[f.Error]
			if !found {
				k, at[f.Error] = len(causes), len(causes)
				causes = append(causes, FailureReason{Cause: f.Error, SampleNames: []string{}})
			}
			causes[k].Count += f.Count
			if len(samples[f.Error]) < samplesRead {
				samples[f.Error] = append(samples[f.Error], f.Items...)
			}
		}
		return nil
	}, `SELECT failures FROM refresh_batch_items WHERE job_id `+s.Dialect.OneOf(1)+` AND failures <> '[]' ORDER BY job_id, batch`,
		s.Dialect.EncodeIDs(jobs))
	slices.SortFunc(causes, func(a, b FailureReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cause, b.Cause))
	})
	return causes, samples, err
}

// samplesRead is the number of item IDs after which no more are collected for a cause. It
// exceeds FailureSamples because an item that failed in several jobs is listed in each of them.
const samplesRead = 40

// addSamples reads the keys of the sample items of each cause.
func addSamples(ctx context.Context, s *db.DB, causes []FailureReason, samples map[string][]int64) error {
	var ids []int64
	for i := range causes {
		ids = append(ids, samples[causes[i].Cause]...)
	}
	keys := map[int64]catalog.Key{}
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id int64
		var k catalog.Key
		err := r.Scan(&id, &k.AppID, &k.Name, &k.Phase)
		keys[id] = k
		return err
	}, `SELECT id, app_id, name, phase FROM item WHERE id `+s.Dialect.OneOf(1), s.Dialect.EncodeIDs(ids))
	for i := range causes {
		for _, id := range samples[causes[i].Cause] {
			if key, found := keys[id]; found {
				causes[i].add(key)
			}
		}
	}
	return err
}

// add adds the item to the samples, unless they are complete or contain the same name.
func (c *FailureReason) add(key catalog.Key) {
	if len(c.Items) < refresh.FailureSamples && !slices.Contains(c.SampleNames, key.Name) {
		c.Items = append(c.Items, key)
		c.SampleNames = append(c.SampleNames, key.Name)
	}
}
