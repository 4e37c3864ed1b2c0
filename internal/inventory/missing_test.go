package inventory_test

import (
	"testing"

	"assay/internal/catalog"
)

func TestQueueMissing_QueuesEachUnpricedItemOnceAndCreatesUnknownItems(t *testing.T) {
	p := newFixture(t)
	p.sync("u", pushAt(0, asset("1", "priced"), asset("2", "waits")))
	p.price("priced", 10)
	key := func(app int32, name, phase string) catalog.Key {
		return catalog.Key{AppID: app, Name: name, Phase: phase}
	}
	keys := []catalog.Key{
		key(730, "waits", ""), key(730, "new", ""), key(440, "new", ""), key(730, "new", "Ruby"), key(730, "new", ""), key(730, "priced", ""),
	}
	entries := p.count(`SELECT count(*) FROM missing_price`)
	for _, added := range []int64{3, 0} {
		if err := p.QueueMissing(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		same(t, "new queue entries", p.count(`SELECT count(*) FROM missing_price`)-entries, added)
		entries += added
		same(t, "calls of Queued", p.queued, 2)
		same(t, "items", p.count(`SELECT count(*) FROM item`), 5)
	}
	same(t, "rows", p.count(`SELECT count(*) FROM inventory`), 2)
}
