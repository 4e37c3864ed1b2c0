package refresh_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/view/prices"
)

// entry is an entry of the missing-price queue (docs/explanation/refresh.md).
type entry struct {
	due, soonest time.Time
	attempts     int
}

// queueModel models the missing-price queue with one provider.
type queueModel struct {
	listed  map[string]bool // names that the provider quotes now
	priced  map[string]bool
	entries map[string]*entry
	now     time.Time

	file   bool // the provider serves a file, which is requested again after interval
	newest map[string]bool
	at     time.Time
	tried  []string // names in the order of their attempts
}

const interval = 5 * time.Minute

// name models a sync or a lookup of items.
func (m *queueModel) name(names ...string) {
	for _, n := range names {
		switch e := m.entries[n]; {
		case m.priced[n]:
		case e == nil:
			m.entries[n] = &entry{due: m.now, soonest: m.now}
		case e.soonest.Before(e.due):
			e.due = e.soonest
		}
	}
}

// work models all attempts that are due.
func (m *queueModel) work() {
	for {
		var due []string
		for n, e := range m.entries {
			if !e.due.After(m.now) {
				due = append(due, n)
			}
		}
		if len(due) == 0 {
			return
		}
		quoted := m.listed
		if m.file {
			if m.newest == nil || m.now.Sub(m.at) >= interval {
				m.response(due)
			}
			quoted = m.newest
		}
		for _, n := range due {
			m.attempt(n, quoted[n])
		}
	}
}

// response models a new response. Newly listed items are due immediately.
func (m *queueModel) response(except []string) {
	m.newest, m.at = maps.Clone(m.listed), m.now
	for n, e := range m.entries {
		if m.newest[n] && !slices.Contains(except, n) {
			e.due = m.now
		}
	}
}

func (m *queueModel) attempt(n string, quoted bool) {
	m.tried = append(m.tried, n)
	if quoted {
		m.priced[n] = true
		delete(m.entries, n)
		return
	}
	e := m.entries[n]
	e.soonest = m.now.Add(time.Hour)
	e.due = m.now.Add(min(time.Hour<<min(e.attempts, 10), 72*time.Hour))
	e.attempts++
}

func TestRule3_QueueMatchesAModel(t *testing.T) {
	for _, shape := range []provider.Shape{provider.Batch, provider.Bulk} {
		t.Run(string(shape), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(randtest.Seed(t), 0))
			all := names("Item", 20)
			s := batch("alpha", 100, nil, "a1")
			if shape == provider.Bulk {
				s = bulk("alpha", nil, "a1")
			}
			for _, n := range names("Another", 50) { // enough names that a missing name is no anomaly
				s.extra = append(s.extra, provider.Quote{Market: "a1", Name: n, Currency: "USD", Ask: units(1), Listings: provider.Unknown, Sales: provider.Unknown})
			}
			w := newWorld(t, s)
			m := &queueModel{
				listed: map[string]bool{}, priced: map[string]bool{}, entries: map[string]*entry{}, now: epoch, file: shape == provider.Bulk,
			}
			steps := randtest.Count(100, 3000)
			for step := range steps + 1 {
				var did string
				switch n := rng.IntN(6); {
				case step == steps: // in the end all names are listed and due
					did = "list all"
					for _, n := range all {
						m.listed[n] = true
					}
					s.items[730] = all
					w.clock.Add(100 * time.Hour)
					m.now = m.now.Add(100 * time.Hour)
				case n == 0: // a user pushes some names
					own := some(rng, all, 4)
					did = fmt.Sprintf("push %v", own)
					w.push(fmt.Sprintf("u%d", rng.IntN(2)), 730, own...)
					m.name(own...)
				case n == 1: // a lookup queues some
					own := some(rng, all, 2)
					did = fmt.Sprintf("lookup %v", own)
					var keys []catalog.Key
					for _, n := range own {
						keys = append(keys, catalog.Key{AppID: catalog.CS2, Name: n})
					}
					must(t, w.sync.QueueMissing(t.Context(), keys))
					m.name(own...)
				case n == 2: // the provider lists a name, or drops one that has no price yet
					n := all[rng.IntN(len(all))]
					if m.listed[n] = m.priced[n] || rng.IntN(3) == 0; !m.listed[n] {
						delete(m.listed, n)
					}
					s.items[730] = slices.Sorted(maps.Keys(m.listed))
					did = fmt.Sprintf("listed %v", s.items[730])
				default:
					d := []time.Duration{time.Minute, 10 * time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour, 30 * time.Hour}[rng.IntN(6)]
					did = "wait " + d.String()
					w.clock.Add(d)
					m.now = m.now.Add(d)
				}
				before := len(m.tried)
				m.work()
				w.drain()
				checkQueue(t, w, m)
				if t.Failed() {
					t.Fatalf("after %q with the attempts %v: got a queue that differs from the model, want the same", did, m.tried[before:])
				}
			}
			if len(m.priced) == 0 || len(m.entries) > 0 {
				t.Errorf("got %d names with a price and %d in the queue, want at least one with a price and none in the queue", len(m.priced), len(m.entries))
			}
		})
	}
}

func some(rng *rand.Rand, all []string, most int) []string {
	out := slices.Clone(all)
	rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out[:1+rng.IntN(most)]
}

// checkQueue compares the stored queue with the model.
func checkQueue(t *testing.T, w *world, m *queueModel) {
	t.Helper()
	want := map[string]string{}
	for n, e := range m.entries {
		want[n] = fmt.Sprintf("due %v, attempts %d", e.due.UTC().Format(time.RFC3339), e.attempts)
	}
	rows, err := w.raw.QueryContext(t.Context(), `SELECT i.name, m.due_at, m.attempts FROM missing_price m JOIN item i ON i.id = m.item_id`)
	must(t, err)
	defer func() { _ = rows.Close() }()
	got := map[string]string{}
	for rows.Next() {
		var n string
		var due int64
		var attempts int
		must(t, rows.Scan(&n, &due, &attempts))
		if _, twice := got[n]; twice {
			t.Errorf("got %s twice in the queue, want once", n)
		}
		got[n] = fmt.Sprintf("due %v, attempts %d", time.UnixMicro(due).UTC().Format(time.RFC3339), attempts)
	}
	must(t, rows.Err())
	equal(t, "entries", fmt.Sprint(got), fmt.Sprint(want))
	for n, e := range m.entries { // lookups report the same times
		key := catalog.Key{AppID: catalog.CS2, Name: n}
		prices, err := prices.Prices(t.Context(), w.store, key.AppID, []catalog.Key{key})
		must(t, err)
		equal(t, "next attempt for the item", prices[key].DueAt, e.due)
		equal(t, "next attempt if a sync names the item again", prices[key].SoonestAt, e.soonest)
	}
	equal(t, "priced names", w.count(`SELECT count(*) FROM item WHERE price > 0`), int64(len(m.priced)))
}

func TestRule3_SyncBringsTheNextAttemptForward(t *testing.T) {
	s := batch("alpha", 10, nil, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	for _, hours := range []int{1, 2, 4} {
		w.clock.Add(time.Duration(hours) * time.Hour)
		w.drain()
	}
	equal(t, "attempts", len(s.requested()), 4)
	w.clock.Add(30 * time.Minute)
	w.push("u", 730, "A") // before this push, the next attempt was due 8 hours after the last one
	w.drain()
	equal(t, "attempts within the first pause", len(s.requested()), 0)
	w.clock.Add(30 * time.Minute)
	s.items[730] = []string{"A"}
	w.drain()
	equal(t, "attempts after the first pause", len(s.requested()), 1)
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}
