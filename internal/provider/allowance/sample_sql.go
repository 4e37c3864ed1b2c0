package allowance

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// SamplesKept is how long samples of requests are stored.
const SamplesKept = 35 * 24 * time.Hour

// Sampled is a client whose requests are counted for statistics.
type Sampled struct {
	Provider, Host string
	Client         *provider.Client
}

const sampleColumns = "provider text, host text, result text, at bigint, up_to bigint, requests bigint, duration bigint, bytes bigint"

var samplesBulk = db.NewBulk(`INSERT INTO request_sample (provider, host, result, at, up_to, requests, duration, bytes) `, sampleColumns, `
ON CONFLICT (provider, host, at, result, up_to) DO UPDATE SET requests = request_sample.requests + excluded.requests,
	duration = request_sample.duration + excluded.duration, bytes = request_sample.bytes + excluded.bytes`)

// StoreSamples adds the requests of the clients since the last call to the stored samples.
// After an error, the clients keep these requests for the next call.
func StoreSamples(ctx context.Context, s *db.DB, clients []Sampled) error {
	type row struct {
		Sampled
		provider.Sample
	}
	var rows []row
	for _, c := range clients {
		for _, n := range c.Client.TakeSamples() {
			rows = append(rows, row{c, n})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	// Two clients can have the same host. One statement must not write a row twice.
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Host, b.Host), a.At.Compare(b.At),
			cmp.Compare(a.Result, b.Result), cmp.Compare(a.UpTo, b.UpTo))
	})
	sums := make([]row, 0, len(rows))
	for _, r := range rows {
		if n := len(sums); n > 0 && sums[n-1].Provider == r.Provider && sums[n-1].Host == r.Host && sums[n-1].SampleKey == r.SampleKey {
			sums[n-1].Requests += r.Requests
			sums[n-1].Duration += r.Duration
			sums[n-1].Bytes += r.Bytes
			continue
		}
		sums = append(sums, r)
	}
	table := db.NewTable(sampleColumns, len(sums))
	for _, r := range sums {
		table.Text(r.Provider, r.Host, string(r.Result))
		table.Int(db.Micros(r.At), r.UpTo.Microseconds(), r.Requests, r.Duration.Microseconds(), r.Bytes)
	}
	err := s.InTx(ctx, func(t *db.Tx) error {
		_, err := t.WriteRows(samplesBulk, table)
		return err
	})
	if err != nil {
		for _, r := range rows {
			r.Client.ReturnSamples([]provider.Sample{r.Sample})
		}
	}
	return err
}

// DeleteOldSamples deletes the samples that are older than SamplesKept.
func DeleteOldSamples(t *db.Tx) error {
	_, err := t.Exec(`DELETE FROM request_sample WHERE at < $1`, db.Micros(t.Now().Add(-SamplesKept)))
	return err
}
