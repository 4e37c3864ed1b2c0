package refresh

import (
	"context"

	"assay/internal/catalog"
	"assay/internal/db"
)

// requestedByQueue is the requester of missing-price jobs.
const requestedByQueue = "missing-price queue"

// Missing starts a job for the due entries of the missing-price queue, unless such a job is
// live. Entries that become due while a job is live are in the next job.
func (p *planner) Missing(ctx context.Context) (bool, error) {
	if len(p.providers) == 0 {
		return false, nil // the entries wait until a provider is configured
	}
	rules := p.rules(p.now(), false)
	rules.Missing = true
	due, err := hasDueMissing(ctx, p.store, rules)
	if err != nil || !due {
		return false, err
	}
	var made bool
	err = p.store.InTx(ctx, func(tx *db.Tx) (err error) {
		_, made, err = InsertJob(tx, Job{Kind: Missing, RequestedBy: requestedByQueue})
		return err
	})
	if made {
		p.wake(WorkPlan)
	}
	return false, err
}

const (
	// waitingStep is how many name buckets of waiting entries are read at a time.
	waitingStep = catalog.Buckets / 8
	// maxListed limits the quotes of waiting entries in the responses of one job.
	maxListed = 20_000
)

// newlyListed returns the quotes of waiting items in a job's good new responses. Waiting
// items are in the missing-price queue and not in the job.
func (f *fetcher) newlyListed(ctx context.Context, job *Job, results []ValidationResult) ([]Listed, error) {
	good := map[UnitMarket]bool{}
	units := map[int64]FetchUnit{}
	var ids []int64
	for _, v := range results {
		if v.Reused || v.Fetch.Outcome != OutcomeOK {
			continue
		}
		if _, noted := units[v.Unit.ID]; !noted {
			units[v.Unit.ID], ids = v.Unit, append(ids, v.Unit.ID)
		}
		good[UnitMarket{v.Unit.ID, v.Fetch.MarketID}] = true
	}
	u := newDecoder()
	defer u.close()
	var out []Listed
	for from := 0; from < catalog.Buckets && len(ids) > 0; from += waitingStep {
		waiting, err := waitingItems(ctx, f.store, *job, from, from+waitingStep)
		if err != nil {
			return nil, err
		}
		items := make(map[catalog.Key]int64, len(waiting))
		var buckets []int64
		for _, w := range waiting {
			items[w.Key] = w.ID
			if b := int64(catalog.Bucket(w.Key.Name)); len(buckets) == 0 || buckets[len(buckets)-1] != b {
				buckets = append(buckets, b) // items are ordered by id and so by bucket
			}
		}
		if len(buckets) == 0 {
			continue
		}
		err = f.readBlobs(ctx, ids, buckets, func(b Blob) error {
			return f.decode(u, b, func(q *quoteRecord) {
				if q.Ask == 0 && q.Sale == 0 || len(out) == maxListed || !good[UnitMarket{b.Unit, q.Market}] {
					return
				}
				if id, ok := items[catalog.Key{AppID: units[b.Unit].AppID, Name: string(q.Name), Phase: q.Phase}]; ok {
					out = append(out, Listed{ItemID: id, MarketID: q.Market, Ask: q.Ask, Sale: q.Sale})
				}
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
