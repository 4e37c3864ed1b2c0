package inventory_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/user"
	"assay/internal/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestMain runs all tests with both databases.
func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// fixture is a database with an inventory service.
type fixture struct {
	testing.TB
	*inventory.Service
	store       *db.DB
	database    dbtest.Database
	raw         *sql.DB // separate connection to the database
	queued      int     // number of calls of Queued
	inspectable int     // number of calls of Inspectable
	faults      func(point string) error
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	database := dbtest.NewDatabase(tb)
	p := &fixture{TB: tb, database: database}
	s, err := db.Open(tb.Context(), db.Options{Path: database.Path, URL: database.URL, Now: func() time.Time { return noon }, Faults: func(point string) error {
		if p.faults == nil {
			return nil
		}
		return p.faults(point)
	}})
	if err != nil {
		tb.Fatal(err)
	}
	raw := database.Raw(tb)
	p.store, p.raw = s, raw
	p.Service = &inventory.Service{
		InTx:        s.InTx,
		Queued:      func() { p.queued++ },
		Inspectable: func() { p.inspectable++ },
	}
	tb.Cleanup(func() {
		raw.Close()
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

func (p *fixture) count(query string, args ...any) (n int64) {
	p.Helper()
	if err := p.raw.QueryRowContext(p.Context(), query, args...).Scan(&n); err != nil {
		p.Fatal(err)
	}
	return n
}

// version returns a number that changes with every write to the database.
func (p *fixture) version() int64 { return p.database.Version(p.TB, p.raw) }

// price sets the price of an item of CS2, like a refresh.
func (p *fixture) price(name string, micros int64) {
	p.Helper()
	if _, err := p.raw.ExecContext(p.Context(), `UPDATE item SET price = $1 WHERE name = $2`, micros, name); err != nil {
		p.Fatal(err)
	}
}

func (p *fixture) sync(user string, push inventory.Push) inventory.Result {
	p.Helper()
	r, err := p.Sync(p.Context(), user, push, inventory.Normal)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// pushAt returns a push with a snapshot time of noon plus the given minutes.
func pushAt(minute int, assets ...inventory.Asset) inventory.Push {
	return inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: noon.Add(time.Duration(minute) * time.Minute), Assets: assets}
}

func asset(id, name string) inventory.Asset {
	return inventory.Asset{AssetID: id, Name: name, Amount: 1, Tradable: true, Marketable: true}
}

// rows returns a user's rows as text, by game, context and asset.
func (p *fixture) rows(userID string) map[string]string {
	p.Helper()
	key, ok, err := user.Key(p.Context(), p.store, userID)
	if err != nil || !ok {
		p.Fatalf("user %q: got exists %v, error %v, want true", userID, ok, err)
	}
	list, err := view.ReadInventory(p.Context(), p.store, key, 0, 0, 1<<20)
	if err != nil {
		p.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list {
		id := fmt.Sprint(r.AppID, "/", r.ContextID, "/", r.AssetID)
		if _, twice := out[id]; twice {
			p.Errorf("got several rows of asset %s, want one", id)
		}
		out[id] = fmt.Sprintf("%s|%s|%s|%s|%d|%t|%t|%s|%d", r.Name, r.Phase, r.ClassID, r.InstanceID, r.Amount, r.Tradable, r.Marketable, r.Inspect, r.Value)
	}
	return out
}

func same[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// delete deletes a user without checks.
func (p *fixture) delete(userID string) {
	p.Helper()
	if err := p.store.InTx(p.Context(), func(tx *db.Tx) error {
		held, err := user.Lock(tx, userID)
		if err != nil {
			return err
		}
		return market.DeleteUser(tx, held.Key)
	}); err != nil {
		p.Fatal(err)
	}
}
