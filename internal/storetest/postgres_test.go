package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pgtest"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/storetest"
	"assay/internal/user"
)

func TestPostgres_ManyMigrateAtOnce(t *testing.T) {
	url := pgtest.Shared(t).NewDatabase(t)
	if _, err := db.Open(t.Context(), db.Options{URL: url, KeepSchema: true}); !errors.Is(err, db.ErrSchemaOutdated) {
		t.Errorf("an empty database that is to be kept: %v", err)
	}
	var starting sync.WaitGroup
	for range 6 {
		starting.Go(func() {
			s, err := db.Open(t.Context(), db.Options{URL: url + "&pool_max_conns=4"})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	s := dbtest.Database{URL: url}.Open(t, db.Options{KeepSchema: true})
	v, err := s.SchemaVersion(t.Context())
	must(t, err)
	raw := dbtest.Database{Engine: dbtest.PostgreSQL, URL: url}.Raw(t)
	defer raw.Close()
	_, err = raw.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)`, v+1)
	must(t, err)
	if _, err := db.Open(t.Context(), db.Options{URL: url}); err == nil || !strings.Contains(err.Error(), "use the newer version of assay") {
		t.Errorf("a newer schema: %v", err)
	}
}

// Transactions that lock in opposite orders both come to an end.
func TestPostgres_ADeadlockIsRunAgain(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	users := []user.User{{ID: "a"}, {ID: "b"}}
	for _, u := range users {
		must(t, s.InTx(t.Context(), func(tx *db.Tx) error { return user.Put(tx, u) }))
	}
	var both, running sync.WaitGroup
	both.Add(2)
	for range 2 {
		order := slices.Clone(users)
		slices.Reverse(users)
		meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
		running.Go(func() {
			err := s.InTx(t.Context(), func(tx *db.Tx) error {
				if err := user.Put(tx, order[0]); err != nil {
					return err
				}
				meet()
				return user.Put(tx, order[1])
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

func TestPostgres_KeepsPlansOfSmallTransactionsAlone(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	is := func(mode, scan string) func(*db.Tx) error {
		return func(tx *db.Tx) error {
			for name, want := range map[string]string{"plan_cache_mode": mode, "enable_seqscan": scan} {
				if got, err := setting(tx, name); err != nil || got != want {
					t.Errorf("%s is %q, want %q: %v", name, got, want, err)
				}
			}
			return nil
		}
	}
	must(t, s.InSmallTx(t.Context(), is("force_generic_plan", "off")))
	must(t, s.InTx(t.Context(), is("force_custom_plan", "on"))) // on the same connection: none is idle but it
}

func TestPostgres_WorksThroughAPooler(t *testing.T) {
	pooler := pgtest.Shared(t).StartPooler(t, 20)
	storetest.Run(t, func(tb testing.TB, o db.Options) *db.DB {
		d := dbtest.On(tb, dbtest.PostgreSQL)
		o.Direct = d.URL
		d.URL = pooler.Through(tb, d.URL)
		return d.Open(tb, o)
	})
}

func TestPostgres_ChangesTablesPastThePooler(t *testing.T) {
	server := pgtest.Shared(t)
	direct := server.NewDatabase(t)
	pooled := dbtest.Database{URL: server.StartPooler(t, 20).Through(t, direct)}
	pooled.Open(t, db.Options{Direct: direct})
	pooled.Open(t, db.Options{Direct: direct, KeepSchema: true})
}

func TestPostgres_TellsToTryAgainWhatMayPass(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	url := server.NewDatabase(t)
	s := dbtest.Database{URL: url}.Open(t, db.Options{})
	write := func() error {
		return s.InTx(t.Context(), func(tx *db.Tx) error { return user.Put(tx, user.User{ID: "u"}) })
	}
	must(t, write())
	must(t, server.Stop())
	for what, err := range map[string]error{"write": write(), "health": s.Healthy(t.Context())} {
		if err == nil {
			t.Errorf("%s without a server", what)
		}
	}
	if f := fault.Of(write()); f == nil || f.Kind != fault.Unavailable {
		t.Errorf("a write without a server: %+v", f)
	}
	if err := write(); errors.Is(err, db.ErrCommitUnknown) {
		t.Errorf("a transaction that never began: %v", err)
	}
	must(t, server.Restart())
	must(t, s.Healthy(t.Context()))
	must(t, write())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f := fault.Of(s.InTx(ctx, func(*db.Tx) error { return nil })); f != nil {
		t.Errorf("a caller that gave up: %+v", f)
	}
}

func TestPostgres_RefusesWhatIsNoAddress(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:secret@h:notaport/db":        "no address",
		"postgres://u:secret@h/d?pool_max_conns=x": "4 or more",
		"postgres://u:secret@h/d?pool_max_conns=2": "4 or more",
		"postgres://u:secret@h/d?sslmode=perhaps":  "no address",
	} {
		_, err := db.Open(t.Context(), db.Options{URL: address})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// planned is a batch of a job that is to estimate two items, which a user owns.
func planned(t *testing.T, s *db.DB) (b *refresh.Batch, items []refresh.Item) {
	t.Helper()
	keys := []catalog.Key{{AppID: 730, Name: "A"}, {AppID: 730, Name: "B"}}
	must(t, s.InTx(t.Context(), func(tx *db.Tx) error {
		user, err := user.Ensure(tx, "u")
		if err != nil {
			return err
		}
		made, err := catalog.EnsureItems(tx, 730, keys)
		if err != nil {
			return err
		}
		rows := []inventory.Row{{AssetID: "a", ItemID: made[keys[0]].ID, Amount: 1}, {AssetID: "b", ItemID: made[keys[1]].ID, Amount: 1}}
		if err := inventory.AddInventory(tx, user, 730, "2", rows, nil); err != nil {
			return err
		}
		job, _, err := refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "test"})
		if err != nil {
			return err
		}
		if _, err := refresh.StartJob(tx, job, 1, 0); err != nil {
			return err
		}
		if err := refresh.PlanItems(tx, job, refresh.Rules{Now: tx.Now(), Forced: true}, 1); err != nil {
			return err
		}
		if _, err := refresh.StoreValidation(tx, job, nil, nil); err != nil {
			return err
		}
		b, err = refresh.ClaimBatch(tx, "me")
		return err
	}))
	items, err := refresh.BatchItems(t.Context(), s, *b)
	must(t, err)
	if len(items) != len(keys) {
		t.Fatalf("%d items to estimate, want %d", len(items), len(keys))
	}
	return b, items
}

// priced is an estimate that gives items a price.
func priced(items []refresh.Item, price money.Micro) (s refresh.Estimates) {
	for _, i := range items {
		s.Items = append(s.Items, refresh.EstimatedItem{Item: i, State: refresh.ItemUpdated, Answered: true, Estimate: pricing.Priced{Price: price, Estimated: price}})
	}
	s.Counts = refresh.Counts{Updated: int64(len(items)), Changed: int64(len(items))}
	return s
}

// What an estimate writes beside the items themselves takes most of its time. Syncs that
// copy prices must not wait for that.
func TestPostgres_SyncsWaitOnlyForTheEndOfAnEstimate(t *testing.T) {
	database := dbtest.On(t, dbtest.PostgreSQL)
	s := database.Open(t, db.Options{})
	raw := database.Raw(t)
	defer func() { must(t, raw.Close()) }()
	b, items := planned(t, s)
	held, err := raw.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = held.ExecContext(t.Context(), `LOCK TABLE refresh_item IN SHARE MODE`)
	must(t, err)
	estimated := make(chan error, 1)
	go func() {
		estimated <- s.InTx(t.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, priced(items, 10)); return err })
	}()
	for waits := false; !waits; {
		must(t, held.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'refresh_item'::regclass)`).Scan(&waits))
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = s.InTx(soon, func(tx *db.Tx) error {
		prices, err := catalog.HoldPrices(tx, []int64{items[0].ID, items[1].ID})
		if prices[items[0].ID] != 0 {
			t.Errorf("a price that is not committed: %v", prices)
		}
		return err
	})
	if err != nil {
		t.Errorf("a sync waits for an estimate that does not write items yet: %v", err)
	}
	must(t, held.Rollback())
	must(t, <-estimated)
}

// Quotes of names that come in the background read what is stored of an item, and a
// estimate writes more of it before they are written.
func TestPostgres_QuotesOfAnItemThatIsEstimatedMeanwhileAreWrittenAgain(t *testing.T) {
	s := dbtest.On(t, dbtest.PostgreSQL).Open(t, db.Options{})
	b, items := planned(t, s)
	var revs []int64
	must(t, s.InTx(t.Context(), func(tx *db.Tx) error {
		named, err := refresh.NamedItems(tx, 730, []string{"A"})
		if err != nil {
			return err
		}
		revs = append(revs, named[0].Rev)
		if len(revs) == 1 {
			must(t, s.InTx(t.Context(), func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, priced(items, 10)); return err }))
		}
		return refresh.KeepQuotes(tx, named)
	}))
	if want := []int64{0, 1}; !slices.Equal(revs, want) {
		t.Errorf("revisions that were read: %v, want %v", revs, want)
	}
}

// setting returns how something is set in PostgreSQL.
func setting(t *db.Tx, name string) (value string, err error) {
	err = t.QueryRow(`SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}
