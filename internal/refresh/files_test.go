package refresh_test

import (
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// twoFiles returns a provider with market m in two files. One file has the names a, and the
// other has the names b.
func twoFiles(a, b []string) *fakeProvider {
	s := newProvider("alpha", provider.Bulk, nil, []string{"m"})
	s.d.Files = []provider.File{
		{Key: "a.json", AppID: catalog.CS2, Markets: []string{"m"}},
		{Key: "b.json", AppID: catalog.CS2, Markets: []string{"m"}},
	}
	s.items[catalog.CS2] = append(append([]string{}, a...), b...)
	return s
}

func TestRule7_MarketOfTwoFilesLacksItemOnlyIfBothDo(t *testing.T) {
	listA, listB := names("A", 200), names("B", 200)
	for _, c := range []struct {
		name   string
		damage func(s *fakeProvider)
		want   money.Micro // average price of an item in the first file
	}{
		{"fails", func(s *fakeProvider) {
			s.fail = func(_ int, call provider.Call) error {
				if call.File == "a.json" {
					return s.broken(provider.KindServer)
				}
				return nil
			}
		}, units(9)},
		{"is quarantined", func(s *fakeProvider) {
			s.price = func(_, name string) money.Micro {
				if name[0] == 'A' {
					return units(1000)
				}
				return units(8)
			}
		}, units(9)},
		{"delisted", func(s *fakeProvider) {
			s.edit = func(q *provider.Quote) bool { return q.Name != listA[0] }
		}, units(10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, other := twoFiles(listA, listB), bulk("beta", append(append([]string{}, listA...), listB...), "b1")
			s.price = func(string, string) money.Micro { return units(8) }
			s.split = map[string]byte{"a.json": 'A', "b.json": 'B'}
			w := newWorld(t, s, other)
			w.push("u", 730, append(append([]string{}, listA...), listB...)...)
			w.drain()
			equal(t, "the average", w.named(listA[0]).Average, units(9))
			c.damage(s)
			w.clock.Add(7 * time.Hour)
			j := w.run(false)
			equal(t, "state", j.State, refresh.Finished)
			equal(t, "average", w.named(listA[0]).Average, c.want)
			equal(t, "the average", w.named(listB[0]).Average, units(9))
			snaps, err := view.Snapshots(t.Context(), w.store, w.named(listA[0]).ID)
			must(t, err)
			if offered := snaps[0].Reason == ""; offered != (c.want == units(9)) {
				t.Errorf("got the reason %q with the average %v, want no reason only with the average 9", snaps[0].Reason, c.want)
			}
			w.checkIdle()
		})
	}
}
