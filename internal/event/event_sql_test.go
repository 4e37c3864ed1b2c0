package event_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
)

// stored returns the newest events as "kind data", newest first.
func stored(f *dbtest.Fixture) []string {
	f.Helper()
	events, err := event.List(f.Context(), f.DB, 1000)
	f.Must(err)
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = fmt.Sprintf("%s %s", e.Kind, e.Data)
	}
	return out
}

func TestAdd_StoresEvents(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			return errors.Join(
				event.Add(tx, event.LedgerProblem{UserID: "u★", Status: "failed", Checks: []string{"cached_balance"}, FailureCount: 1}),
				event.Add(tx, event.ProviderUp{Provider: "s", Why: event.WhyBreaker, Detail: "\"'\n"}),
			)
		})
		events, err := event.List(f.Context(), f.DB, 10)
		f.Must(err)
		f.Is("number of events", len(events), 2)
		f.Is("data of the newest event", string(events[0].Data), `{"provider":"s","why":"breaker","host":"","detail":"\"'\n"}`)
		f.Is("kind of the older event", events[1].Kind, event.LedgerHasProblem)
		f.Is("data of the older event", string(events[1].Data), `{"userId":"u★","status":"failed","checks":["cached_balance"],"failureCount":1}`)
		f.Is("time of the older event", events[1].At, f.Now.Truncate(time.Microsecond))
		f.Is("counted events of this kind", event.Counts(f.DB)[event.LedgerHasProblem], int64(1))
		events, err = event.List(f.Context(), f.DB, 1)
		f.Must(err)
		f.Is("events with limit 1", len(events), 1)
	})
}

func TestRetain_RemovesByAgeAndNumber(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		add := func(n int) {
			f.Tx(func(tx *db.Tx) error {
				for range n {
					if err := event.Add(tx, event.ProviderUp{Provider: "s"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		retain := func(age time.Duration) int {
			number(f)
			f.Must(event.Retain(f.Context(), f.DB, age))
			return len(stored(f))
		}
		add(30)
		f.Now = f.Now.Add(48 * time.Hour)
		f.Is("minimum number of old events", retain(time.Hour), 30)
		add(40)
		f.Is("events not older than the limit", retain(48*time.Hour), 70)
		f.Is("old events deleted down to the minimum", retain(47*time.Hour), 50)
		f.Is("minimum after another run", retain(47*time.Hour), 50)
		add(10_000)
		events, err := event.List(f.Context(), f.DB, 20_000)
		f.Must(err)
		f.Is("events before Retain", len(events), 10_050)
		f.Must(event.Retain(f.Context(), f.DB, 48*time.Hour))
		events, err = event.List(f.Context(), f.DB, 20_000)
		f.Must(err)
		f.Is("events with the new ones, which have no number yet", len(events), 10_050)
		f.Is("events after their numbering and Retain", retain(48*time.Hour), 1000)
		events, err = event.List(f.Context(), f.DB, 20_000)
		f.Must(err)
		f.Is("events after Retain", len(events), 10_000)
		f.Is("the events are sorted by id", slices.IsSortedFunc(events, func(a, b event.Stored) int { return int(b.ID - a.ID) }), true)
	})
}

// The second transaction of Retain fails. What the first one deleted is stored, and another call
// deletes the rest.
func TestRetain_DeletesInSmallTransactions(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error { return event.Add(tx, event.ProviderUp{Provider: "s"}) })
		number(f)
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
				INSERT INTO event (kind, at, size, data, number) SELECT 'listing.sold', 0, 1, '{}', i FROM n`)
			return err
		})
		left := func() (n, first int64) {
			f.Must(db.Each(f.Context(), f.DB.Read, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM event WHERE kind = 'listing.sold'`))
			first, err := event.FirstCursor(f.Context(), f.DB.Read)
			f.Must(err)
			return n, first
		}
		commits, failed := 0, errors.New("failed")
		f.Faults = func(point string) error {
			if point == "before commit" {
				if commits++; commits == 2 {
					return failed
				}
			}
			return nil
		}
		f.Is("Retain returned the error", errors.Is(event.Retain(f.Context(), f.DB, time.Hour), failed), true)
		n, first := left()
		f.Is("events and first cursor after one transaction", fmt.Sprint(n, first), "1500 1000")
		f.Must(event.Retain(f.Context(), f.DB, time.Hour))
		n, first = left()
		f.Is("events and first cursor after all transactions", fmt.Sprint(n, first), "0 2500")
		f.Is("transactions", commits, 4)
	})
}

// TestRare_NamesTheFrequentKinds compares the kinds that List skips with the literal condition of the
// index of rare events.
func TestRare_NamesTheFrequentKinds(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			for _, kind := range event.Kinds() {
				if _, err := tx.Exec(`INSERT INTO event (kind, at, data) VALUES ($1, 0, '{}')`, string(kind)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, e := range stored(f) {
			kind, _, _ := strings.Cut(e, " ")
			f.Is(kind, kind == "trade.overdue" || !strings.HasPrefix(kind, "trade.") && !strings.HasPrefix(kind, "listing.") && !strings.HasPrefix(kind, "inventory.") && kind != "price.changed", true)
		}
		f.Is("number of kinds that List returns", len(stored(f)), len(event.Kinds())-8)
	})
}

func TestRetain_LimitsEventsOfListingsByAge(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		feed := event.NewFeed(f.DB, slog.New(slog.DiscardHandler))
		add := func(d event.Data) {
			f.Tx(func(tx *db.Tx) error { return event.Add(tx, d) })
			f.Must(feed.Number(f.Context()))
		}
		add(event.ProviderUp{Provider: "s"})
		first := feed.Last()
		add(event.InventoryPriced{UserID: "u"})
		add(event.ListingEnded{ListingID: "1", State: "sold"})
		sold := feed.Last()
		f.Now = f.Now.Add(73 * time.Hour)
		add(event.TradeMoved{TradeID: "1", State: "settled"})
		f.Must(event.Retain(f.Context(), f.DB, 7*24*time.Hour))
		_, err := event.After(f.Context(), f.DB.Read, first, 10, false)
		f.Is("the cursor before the deleted event expired", errors.Is(err, event.ErrExpired), true)
		found, err := event.After(f.Context(), f.DB.Read, sold, 10, false)
		f.Must(err)
		f.Is("the only event after the deleted one belongs to the settled trade", len(found) == 1 && found[0].Kind == event.TradeSettled, true)
		f.Is("events that List returns", len(stored(f)), 1)
	})
}
