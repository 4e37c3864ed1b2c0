package refresh_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/refresh"
)

func TestApplyRange_WritesPricesToItsRows(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B")
		u := f.own("u", ids[0], ids[1], ids[0], 0) // rows 1 to 4
		id := f.run(10)
		f.Is("values before the first range", fmt.Sprintf("%d", f.values(u)), "[0 0 0 0]")
		f.shards(id, 0, 0)
		f.Is("applied a range without shards", f.applyRange(id, 2, false), false)
		f.openShards(id, 2) // rows 1, and 2 to 4
		f.openShards(id, 3)
		f.shards(id, 2, 2)
		for i, want := range []string{"[10 0 0 0]", "[10 10 10 0]", "[10 10 10 0]"} {
			f.Is(fmt.Sprint("range ", i), f.applyRange(id, 2, false), true)
			f.Is(fmt.Sprint("values after range ", i), fmt.Sprintf("%d", f.values(u)), want)
			f.shards(id, 2, []int{1, 1, 0}[i])
		}
		f.Is("applied a range after the last one", f.applyRange(id, 2, false), false)
		f.finish(id)
		f.shards(id, 0, 0)
		f.openShards(id, 2)
		f.shards(id, 0, 0) // an ended job has no shards

		f.Now = f.Now.Add(7 * time.Hour)
		id = f.run(30)
		f.openShards(id, 1)
		f.Is("applied a range with mostly different rows", f.applyRange(id, 3, true), true)
		f.Is("values after that range", fmt.Sprintf("%d", f.values(u)), "[30 30 10 0]")
		f.Is("applied the other ranges", f.applyRange(id, 3, true), true)
		f.Is("values after the other ranges", fmt.Sprintf("%d", f.values(u)), "[30 30 30 0]")
		f.shards(id, 1, 0)
	})
}

func (f *fixture) openShards(job int64, shards int) {
	f.Helper()
	f.Tx(func(tx *db.Tx) error { return refresh.OpenShards(tx, job, shards) })
}

func (f *fixture) shards(job int64, all, open int) {
	f.Helper()
	gotAll, gotOpen, err := refresh.ApplyShards(f.Context(), f.DB, job)
	f.Must(err)
	f.Is("shards", [2]int{gotAll, gotOpen}, [2]int{all, open})
}

func (f *fixture) applyRange(job, ids int64, most bool) (found bool) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		found, err = refresh.ApplyRange(tx, job, ids, most, ids%2 == 0)
		return err
	})
	return found
}

func TestApplyBatch_WritesPricesToItsRows(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B")
		u := f.own("u", ids[0], ids[1], ids[0], 0)
		byBatch := func(id int64) (n int64) {
			f.Tx(func(tx *db.Tx) (err error) {
				n, err = refresh.ApplyBatch(tx, id, 0)
				return err
			})
			return n
		}
		id := f.run(20)
		f.Is("rows changed by the batch", byBatch(id), int64(3))
		f.Is("cursor of the job", f.job(id).ApplyCursor, int64(1))
		f.Is("rows changed by the same batch again", byBatch(id), int64(0))
		f.finish(id)
		f.Now = f.Now.Add(7 * time.Hour)
		id = f.run(20)
		f.Is("rows changed by a batch without changed items", byBatch(id), int64(0))
		f.Is("values of the rows", fmt.Sprintf("%d", f.values(u)), "[20 20 20 0]")
	})
}

// A process is killed while it writes a range. Other workers look for work at the same time.
func TestApplyRange_RollbackKeepsTheShard(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A")
		u := f.own("u", ids[0], ids[0], ids[0])
		job := f.run(10)
		f.openShards(job, 2)
		died := errors.New("killed")
		others := make(chan struct{})
		err := f.DB.InTx(f.Context(), func(tx *db.Tx) error {
			if found, err := refresh.ApplyRange(tx, job, 2, false, true); err != nil || !found {
				return fmt.Errorf("got no open shard, want one: %w", err)
			}
			go func() {
				defer close(others)
				f.apply(job)
			}()
			giveHeadstart(others) // on PostgreSQL, other workers apply the other shard
			return died
		})
		f.Is("the transaction was killed", errors.Is(err, died), true)
		<-others
		f.apply(job)
		f.shards(job, 2, 0)
		f.Is("values after the retry", fmt.Sprintf("%d", f.values(u)), "[10 10 10]")
	})
}

// apply copies prices to the rows of all shards with several concurrent workers.
func (f *fixture) apply(job int64) {
	f.Helper()
	dbtest.AtOnce(4, func(i int) {
		for found := true; found; {
			found = false
			inOrder := i%2 == 0
			f.Try(func(tx *db.Tx) (err error) {
				found, err = refresh.ApplyRange(tx, job, 5, false, inOrder)
				inOrder = true
				return err
			})
		}
	})
}
