package inventory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
)

// announce sends the events of inventories that no longer wait for prices.
func (p *fixture) announce() {
	p.Helper()
	if err := inventory.AnnouncePriced(p.Context(), p.store); err != nil {
		p.Fatal(err)
	}
}

func (p *fixture) exec(query string, args ...any) {
	p.Helper()
	if _, err := p.raw.ExecContext(p.Context(), query, args...); err != nil {
		p.Fatal(err)
	}
}

// answer sets the price of a queued item, as a missing-price job does before its apply stage. A
// price of 0 means that no market quotes the item.
func (p *fixture) answer(name string, micros int64) {
	p.Helper()
	if micros == 0 {
		p.exec(`UPDATE missing_price SET attempts = attempts + 1 WHERE item_id = (SELECT id FROM item WHERE name = $1)`, name)
		return
	}
	p.price(name, micros)
	p.exec(`DELETE FROM missing_price WHERE item_id = (SELECT id FROM item WHERE name = $1)`, name)
}

// applyAll writes the prices to all rows.
func (p *fixture) applyAll() {
	p.Helper()
	p.exec(`UPDATE inventory SET value = (SELECT nullif(price, 0) FROM item WHERE item.id = inventory.item_id)`)
}

// is checks the number of waiting inventories and the data of all events, oldest first.
func (p *fixture) is(what string, waiting int64, events ...string) {
	p.Helper()
	same(p, what+": waiting inventories", p.count(`SELECT count(*) FROM inventory_waiting`), waiting)
	same(p, what+": number of events", p.count(`SELECT count(*) FROM event WHERE kind = 'inventory.priced'`), int64(len(events)))
	for i, want := range events {
		var got string
		if err := p.raw.QueryRowContext(p.Context(), `SELECT data FROM event WHERE kind = 'inventory.priced' ORDER BY id LIMIT 1 OFFSET $1`, i).Scan(&got); err != nil {
			p.Fatal(err)
		}
		same(p, fmt.Sprintf("%s: data of event %d", what, i), got, want)
	}
}

func priced(user, context string, rows, unpriced int, value string) string {
	return fmt.Sprintf(`{"userId":%q,"appId":730,"contextId":%q,"rows":%d,"unpricedRows":%d,"totalValue":%s,"totalValueDecimal":%q,"currency":"EUR","since":%q}`,
		user, context, rows, unpriced, value, value, noon.Format(time.RFC3339))
}

// newPricedFixture returns a database with prices in euros.
func newPricedFixture(t *testing.T) *fixture {
	p := newFixture(t)
	p.exec(`INSERT INTO setting (name, value) VALUES ('currency', 'EUR')`)
	return p
}

func TestAnnouncePriced_SendsOneEventAfterTheLastPrice(t *testing.T) {
	p := newPricedFixture(t)
	several := asset("3", "B")
	several.Amount = 3
	p.sync("u", pushAt(0, asset("1", "A"), asset("2", "B"), several, inventory.Asset{AssetID: "4", Amount: 1}))
	p.announce()
	p.is("after the sync", 1)
	p.sync("u", pushAt(1, asset("1", "A"), asset("2", "B"), several, inventory.Asset{AssetID: "4", Amount: 1}))
	p.is("after another sync", 1)
	p.answer("A", 2_000_000)
	p.applyAll()
	p.announce()
	p.is("with one of two prices", 1)
	p.answer("B", 1_250_000)
	p.announce()
	p.is("with a price that is not applied yet", 1)
	p.applyAll()
	want := priced("u", "2", 4, 1, "7")
	dbtest.AtOnce(4, func(int) {
		if err := inventory.AnnouncePriced(t.Context(), p.store); err != nil {
			t.Error(err)
		}
	})
	p.is("after the last price, announced by several processes", 0, want)
	p.announce()
	p.sync("u", pushAt(2, asset("1", "A"), asset("2", "B")))
	p.is("after a sync of priced rows", 0, want)
	p.sync("u", pushAt(3, asset("1", "A"), asset("5", "C")))
	p.is("after a sync with a new name", 1, want)
	p.answer("C", 500_000)
	p.applyAll()
	p.announce()
	p.is("after the price of that name", 0, want, priced("u", "2", 2, 0, "2.5"))
}

func TestAnnouncePriced_DoesNotWaitForNamesWithoutAQuote(t *testing.T) {
	p := newPricedFixture(t)
	p.sync("u", pushAt(0, asset("1", "A"), asset("2", "B")))
	p.answer("A", 0)
	p.announce()
	p.is("with one of two answers", 1)
	p.answer("B", 1_000_000)
	p.applyAll()
	p.announce()
	first := priced("u", "2", 2, 1, "1")
	p.is("with both answers", 0, first)
	p.sync("u", pushAt(1, asset("1", "A"), asset("2", "B"), asset("3", "A")))
	p.sync("v", pushAt(1, asset("1", "A")))
	p.announce()
	p.is("after syncs that name the item without a quote again", 0, first)
}

func TestAnnouncePriced_GivesUpAfterADay(t *testing.T) {
	p := newPricedFixture(t)
	p.sync("u", pushAt(0, asset("1", "A")))
	p.exec(`UPDATE inventory_waiting SET since = $1`, noon.Add(time.Second-24*time.Hour).UnixMicro())
	p.announce()
	p.is("before a day has passed", 1)
	p.exec(`UPDATE inventory_waiting SET since = $1`, noon.Add(-24*time.Hour).UnixMicro())
	p.announce()
	p.is("after a day", 0, `{"userId":"u","appId":730,"contextId":"2","rows":1,"unpricedRows":1,"totalValue":0,"totalValueDecimal":"0","currency":"EUR","since":"2026-02-28T12:00:00Z"}`)
}

// More inventories wait than one transaction checks. Some of them wait for a second name.
func TestAnnouncePriced_FindsAllInventories(t *testing.T) {
	p := newPricedFixture(t)
	const users = 230
	for i := range users {
		list := []inventory.Asset{asset("1", "A")}
		if i%10 == 0 {
			list = append(list, asset("2", "B"))
		}
		p.sync(fmt.Sprint("user ", i), pushAt(0, list...))
	}
	p.answer("A", 1_000_000)
	p.applyAll()
	p.announce()
	same(t, "events with the price of A", p.count(`SELECT count(*) FROM event`), int64(users-users/10))
	p.answer("B", 1_000_000)
	p.applyAll()
	p.announce()
	same(t, "events with both prices", p.count(`SELECT count(*) FROM event`), int64(users))
	same(t, "waiting inventories", p.count(`SELECT count(*) FROM inventory_waiting`), int64(0))
}

// Each step that sends an event is killed before or after its commit, and then runs again.
func TestAnnouncePriced_SendsOneEventAcrossKills(t *testing.T) {
	killed := errors.New("killed")
	for _, point := range []string{"before commit", "after commit"} {
		for name, step := range map[string]func(p *fixture) error{
			"announce": func(p *fixture) error { return inventory.AnnouncePriced(p.Context(), p.store) },
			"sync": func(p *fixture) error {
				_, err := p.Sync(p.Context(), "u", pushAt(1, asset("1", "A")), inventory.Normal)
				return err
			},
		} {
			t.Run(name+" "+point, func(t *testing.T) {
				p := newPricedFixture(t)
				p.sync("u", pushAt(0, asset("1", "A")))
				p.answer("A", 1_000_000)
				p.applyAll()
				p.faults = func(at string) error {
					if at == point {
						return killed
					}
					return nil
				}
				if err := step(p); !errors.Is(err, killed) {
					t.Fatalf("first try: got error %v, want %v", err, killed)
				}
				p.faults = nil
				if point == "before commit" {
					p.is("after the kill", 1)
				}
				for range 2 {
					if err := step(p); err != nil {
						t.Fatalf("retry: got error %v, want none", err)
					}
				}
				p.is("after the retries", 0, priced("u", "2", 1, 0, "1"))
			})
		}
	}
}

func TestSync_EndsAWaitWithTheLastUnpricedRow(t *testing.T) {
	p := newPricedFixture(t)
	p.sync("sells", pushAt(0, asset("1", "A"), asset("2", "B")))
	p.sync("empties", pushAt(0, asset("1", "A")))
	p.sync("renews", pushAt(0, asset("1", "B")))
	p.answer("B", 3_000_000)
	p.sync("sells", pushAt(1, asset("2", "B")))
	p.is("after the sync without the unpriced row", 3) // the price of the other row is not applied
	if _, err := p.Renew(t.Context(), "renews", catalog.CS2, "2", noon); err != nil {
		t.Fatal(err)
	}
	p.is("after the sync of the last push", 2, priced("renews", "2", 1, 0, "3"))
	p.sync("empties", pushAt(1))
	p.is("after the sync without rows", 1, priced("renews", "2", 1, 0, "3"), priced("empties", "2", 0, 0, "0"))
	p.delete("sells")
	p.is("after the deletion of the user", 0, priced("renews", "2", 1, 0, "3"), priced("empties", "2", 0, 0, "0"))
}

// An inspection moves rows to the item of their phase, which may have no price.
func TestInspect_WaitsForThePriceOfThePhase(t *testing.T) {
	p := newPricedFixture(t)
	p.sync("v", pushAt(0, asset("1", karambit)))
	p.answer(karambit, 800_000_000)
	p.applyAll()
	p.announce()
	first := priced("v", "2", 1, 0, "800")
	trade := pushAt(0, pulled("3", karambit, 418))
	trade.ContextID = "16"
	p.sync("u", pushAt(0, pulled("1", karambit, 418), asset("2", karambit)))
	p.sync("u", trade)
	p.is("before the inspection", 0, first)
	p.inspect()
	p.is("after the inspection", 2, first)
	p.exec(`DELETE FROM missing_price`)
	p.exec(`UPDATE item SET price = 900000000 WHERE phase <> ''`)
	p.applyAll()
	p.announce()
	p.is("after the price of the phase", 0, first, priced("u", "16", 1, 0, "900"), priced("u", "2", 2, 0, "1700"))
}

// Syncs add and remove names while another goroutine calls AnnouncePriced. At the end no inventory
// may wait, and no wait may have caused two events.
func TestAnnouncePriced_ConcurrentSyncsLoseNoEvent(t *testing.T) {
	p := newPricedFixture(t)
	const rounds = 12
	for round := range rounds {
		name := fmt.Sprint("name ", round)
		dbtest.AtOnce(4, func(i int) {
			if i == 0 {
				if err := inventory.AnnouncePriced(t.Context(), p.store); err != nil {
					t.Error(err)
				}
				return
			}
			push := pushAt(round, asset("1", name))
			if _, err := p.Sync(t.Context(), fmt.Sprint("user ", i), push, inventory.Listing); err != nil {
				t.Error(err)
			}
		})
		same(t, fmt.Sprint("waiting inventories in round ", round), p.count(`SELECT count(*) FROM inventory_waiting`), int64(3))
		p.answer(name, 1_000_000)
		p.applyAll()
	}
	p.announce()
	same(t, "waiting inventories at the end", p.count(`SELECT count(*) FROM inventory_waiting`), int64(0))
	sent := p.count(`SELECT count(*) FROM event WHERE kind = 'inventory.priced'`)
	if sent < 3 || sent > 3*rounds {
		t.Errorf("got %d events, want 1 to %d for each of three users", sent, rounds)
	}
}
