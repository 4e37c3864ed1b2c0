package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/store"
)

func oldestWork(f *fixture) {
	oldest := func() time.Time {
		_, at, err := f.s.Depths(f.Context(), f.now)
		f.must(err)
		return at
	}
	f.is("of nothing", oldest(), time.Time{})
	queued := f.now
	f.tx(func(tx *store.Tx) error { _, _, err := tx.QueueMissing(f.missingIn(tx, "A")); return err })
	f.now = f.now.Add(time.Minute)
	f.own("u", f.items("B")...)
	bulk := f.plan(refresh.Bulk, 1)
	f.is("an entry of the queue", oldest(), queued)
	missing := f.plan(refresh.Missing, 1)
	f.tx(func(tx *store.Tx) error { return tx.CancelJob(missing, time.Hour) })
	f.finish(missing)
	f.is("without one that is due later", oldest(), f.job(bulk).CreatedAt)
}

func causes(f *fixture) {
	ids := f.items("A", "B", "C")
	f.tx(func(tx *store.Tx) error {
		keys := []catalog.Key{{AppID: app, Name: "A", Phase: "Ruby"}, {AppID: app, Name: "A", Phase: "Emerald"}, {AppID: app, Name: "A", Phase: "Sapphire"}}
		made, err := tx.EnsureItems(app, keys)
		for _, k := range keys {
			ids = append(ids, made[k].ID)
		}
		return err
	})
	f.own("u", ids...)
	id := f.plan(refresh.Bulk, 1)
	f.judge(id)
	b := f.claimBatch()
	s := f.settlement(b, 10)
	for i := range s.Items {
		s.Items[i] = refresh.SettledItem{Item: s.Items[i].Item, State: refresh.ItemFailed, Error: "why"}
	}
	f.tx(func(tx *store.Tx) error { _, err := tx.Settle(*b, s); return err })
	got, err := f.s.Causes(f.Context(), []int64{id})
	f.must(err)
	f.is("causes", len(got), 1)
	f.is("cause", got[0].Error, "why")
	f.is("items", got[0].Count, int64(6))
	slices.Sort(got[0].Names)
	f.is("names", fmt.Sprint(got[0].Names), "[A B C]")
}

func medians(f *fixture) {
	f.own("u", f.items("A", "B", "C")...)
	id := f.plan(refresh.Bulk, 1)
	f.judge(id)
	b := f.claimBatch()
	s := f.settlement(b, 10)
	want := map[catalog.Key]refresh.Median{}
	for i := range s.Items {
		if i == 0 {
			continue // has none
		}
		s.Items[i].Estimate.Median, s.Items[i].Estimate.Markets = money.Micro(20+i), i
		want[s.Items[i].Key] = refresh.Median{Price: money.Micro(20 + i), Markets: i}
	}
	f.tx(func(tx *store.Tx) error { _, err := tx.Settle(*b, s); return err })
	read := func(from, to int) map[catalog.Key]refresh.Median {
		got := map[catalog.Key]refresh.Median{}
		f.must(f.s.Medians(f.Context(), from, to, func(k catalog.Key, m refresh.Median) { got[k] = m }))
		return got
	}
	f.is("of all buckets", maps.Equal(read(0, catalog.Buckets), want), true)
	for k, m := range want {
		bucket := catalog.Bucket(k.Name)
		f.is("of its own bucket", read(bucket, bucket+1)[k], m)
		f.is("of the others", read(0, bucket)[k].Price+read(bucket+1, catalog.Buckets)[k].Price, money.Micro(0))
	}
}
