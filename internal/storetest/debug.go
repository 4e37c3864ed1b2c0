package storetest

import (
	"fmt"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

func oldestWork(f *fixture) {
	oldest := func() time.Time {
		_, at, err := view.Depths(f.Context(), f.s, f.now)
		f.must(err)
		return at
	}
	f.is("of nothing", oldest(), time.Time{})
	queued := f.now
	f.tx(func(tx *db.Tx) error { _, _, err := catalog.QueueMissing(tx, f.missingIn(tx, "A")); return err })
	f.now = f.now.Add(time.Minute)
	f.own("u", f.items("B")...)
	bulk := f.plan(refresh.Bulk, 1)
	f.is("an entry of the queue", oldest(), queued)
	missing := f.plan(refresh.Missing, 1)
	f.tx(func(tx *db.Tx) error { return refresh.CancelJob(tx, missing, time.Hour) })
	f.finish(missing)
	f.is("without one that is due later", oldest(), f.job(bulk).CreatedAt)
}

func causes(f *fixture) {
	ids := f.items("A", "B", "C")
	f.tx(func(tx *db.Tx) error {
		keys := []catalog.Key{{AppID: app, Name: "A", Phase: "Ruby"}, {AppID: app, Name: "A", Phase: "Emerald"}, {AppID: app, Name: "A", Phase: "Sapphire"}}
		made, err := catalog.EnsureItems(tx, app, keys)
		for _, k := range keys {
			ids = append(ids, made[k].ID)
		}
		return err
	})
	f.own("u", ids...)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	for i := range s.Items {
		s.Items[i] = refresh.EstimatedItem{Item: s.Items[i].Item, State: refresh.ItemFailed, Error: "why"}
	}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	got, others, err := view.Causes(f.Context(), f.s, []int64{id}, 20)
	f.must(err)
	f.is("causes", len(got), 1)
	f.is("cause", got[0].Error, "why")
	f.is("items", got[0].Count, int64(6))
	f.is("items of other causes", others, int64(0))
	var names []string
	for _, k := range got[0].Items {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	f.is("names", fmt.Sprint(names), "[A B C]")
}

// causesOfAll checks that each failed item is counted, however many there are and
// however many ways of failing.
func causesOfAll(f *fixture) {
	const items, texts = 3000, 40
	var ids []string
	for i := range items {
		ids = append(ids, fmt.Sprintf("Item %04d", i))
	}
	f.own("u", f.items(ids...)...)
	id := f.plan(refresh.Bulk, 1)
	f.storeVerdict(id)
	b := f.claimBatch()
	s := f.estimates(b, 10)
	want := map[string]int64{}
	for i := range s.Items {
		why := fmt.Sprintf("why %02d", i*i%texts)
		want[why]++
		s.Items[i] = refresh.EstimatedItem{Item: s.Items[i].Item, State: refresh.ItemFailed, Error: why}
	}
	f.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	got, others, err := view.Causes(f.Context(), f.s, []int64{id}, 5)
	f.must(err)
	f.is("causes", len(got), 5)
	sum := others
	for i, c := range got {
		f.is("count of "+c.Error, c.Count, want[c.Error])
		f.is("samples of "+c.Error, len(c.Items), 5)
		f.is("order", i == 0 || c.Count <= got[i-1].Count, true)
		sum += c.Count
	}
	f.is("failed items", sum, int64(items))
}

// levels stores what two jobs learned of a game; retention keeps the newest set.
func levels(f *fixture) {
	f.own("u", f.items("A")...)
	learn := func(unit money.Micro, history pricing.History) {
		id := f.plan(refresh.Bulk, 1)
		set := pricing.NewSet(unit)
		l := refresh.Learned{AppID: 730, Set: set, Movers: pricing.Movers{{Key: 7, Market: 1, Move: 5}}, Memories: []refresh.MarketMemory{
			{MarketID: 1, State: pricing.MarketState{J: []money.Micro{unit}}, History: history},
		}}
		f.tx(func(tx *db.Tx) error {
			first, err := refresh.StoreValidation(tx, id, nil, []refresh.Learned{l})
			f.is("first", first, true)
			return err
		})
		f.tx(func(tx *db.Tx) error {
			first, err := refresh.StoreValidation(tx, id, nil, []refresh.Learned{{AppID: 730, Set: pricing.NewSet(unit + 1)}})
			f.is("first, again", first, false)
			return err
		})
		if b := f.claimBatch(); b != nil {
			f.estimate(b, 5)
		}
		f.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
		f.finish(id)
	}
	read := func() money.Micro {
		set, err := refresh.LevelSet(f.Context(), f.s, 730)
		f.must(err)
		if set == nil {
			return 0
		}
		return set.Unit
	}
	f.is("before any", read(), money.Micro(0))
	for i, unit := range []money.Micro{1, 2, 2} {
		learn(unit, []pricing.History{{1, 0}, nil, nil}[i])
		f.is("newest", read(), unit)
		states, err := refresh.MarketMemories(f.Context(), f.s, 730)
		f.must(err)
		f.is("state", states[1].J[0], unit)
		history, err := refresh.MarketHistory(f.Context(), f.s, 730, 1)
		f.must(err)
		f.is("history", len(history), 2) // also where the second job had none to store
	}
	other, err := refresh.LevelSet(f.Context(), f.s, 570)
	f.must(err)
	f.is("of another game", other == nil, true)
}
