package view_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/inventory"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestDepths_ReturnsOldestWorkOfAllQueues(t *testing.T) {
	w := newWorld(t, false)
	oldest := func() time.Time {
		_, at, err := view.Depths(w.Context(), w.store, w.now)
		w.must(err)
		return at
	}
	w.is("oldest time without work", oldest(), time.Time{})
	queued := w.now
	w.own("u", "A")
	w.is("oldest time with an entry in the queue", oldest(), queued)
	w.now = w.now.Add(time.Minute)
	id := w.begin(1)
	w.is("oldest time with a job and an entry", oldest(), queued)
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE missing_price SET due_at = $1`, db.Micros(w.now.Add(time.Hour)))
		return err
	})
	w.is("oldest time when the entry is due later", oldest(), w.now)
	w.end(id)
}

// fail estimates the next batch. Each item fails with the error that why returns.
func (w *world) fail(why func(i int) string) {
	w.Helper()
	var b *refresh.Batch
	w.tx(func(tx *db.Tx) (err error) {
		b, err = refresh.ClaimBatch(tx, "test")
		return err
	})
	items, err := refresh.BatchItems(w.Context(), w.store, *b)
	w.must(err)
	s := refresh.Estimates{MissingRetry: time.Hour}
	for i, item := range items {
		s.Items = append(s.Items, refresh.EstimatedItem{Item: item, State: refresh.ItemFailed, Error: why(i)})
	}
	w.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
}

func TestCauses_SamplesHaveDifferentNames(t *testing.T) {
	w := newWorld(t, false)
	push := inventory.Push{AppID: app, ContextID: "2", SnapshotAt: w.now}
	for i, item := range [][2]string{{"A", ""}, {"B", ""}, {"C", ""}, {"A", "Ruby"}, {"A", "Emerald"}, {"A", "Sapphire"}} {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: item[0], Phase: item[1], Amount: 1})
	}
	sync := inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}}
	_, err := sync.Sync(t.Context(), "u", push, inventory.Normal)
	w.must(err)
	id := w.begin(1)
	w.fail(func(int) string { return "why" })
	got, others, err := view.Causes(t.Context(), w.store, []int64{id}, 0, 20)
	w.must(err)
	w.is("number of causes", len(got), 1)
	w.is("cause", got[0].Cause, "why")
	w.is("items of the cause", got[0].Count, int64(6))
	w.is("items of other causes", others, int64(0))
	var names []string
	for _, k := range got[0].Items {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	w.is("sample names", fmt.Sprint(names), "[A B C]")
}

// The counts must be complete for any number of items and causes.
func TestCauses_CountsAllFailures(t *testing.T) {
	w := newWorld(t, false)
	const items, texts = 3000, 40
	var names []string
	for i := range items {
		names = append(names, fmt.Sprintf("Item %04d", i))
	}
	w.own("u", names...)
	id := w.begin(1)
	want := map[string]int64{}
	w.fail(func(i int) string {
		why := fmt.Sprintf("why %02d", i*i%texts)
		want[why]++
		return why
	})
	got, others, err := view.Causes(t.Context(), w.store, []int64{id}, 0, 5)
	w.must(err)
	w.is("number of causes", len(got), 5)
	sum := others
	for i, c := range got {
		w.is("count of "+c.Cause, c.Count, want[c.Cause])
		w.is("samples of "+c.Cause, len(c.Items), 5)
		w.is("the causes are sorted by their counts", i == 0 || c.Count <= got[i-1].Count, true)
		sum += c.Count
	}
	w.is("failed items", sum, int64(items))
}
