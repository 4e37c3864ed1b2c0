package prices_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view/prices"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// shop is a database with items whose prices a test estimates.
type shop struct {
	testing.TB
	*db.DB
	keys []catalog.Key
}

func openShop(tb testing.TB, items int) *shop {
	tb.Helper()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := dbtest.NewDatabase(tb)
	s, err := db.Open(tb.Context(), db.Options{Path: d.Path, URL: d.URL, Now: func() time.Time { return now }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	sh := &shop{TB: tb, DB: s}
	for i := range items {
		key := catalog.Key{AppID: catalog.CS2, Name: fmt.Sprintf("Item ★ %d", i/2)}
		if i%2 == 1 {
			key.Phase = catalog.Phases[i/2%len(catalog.Phases)]
		}
		sh.keys = append(sh.keys, key)
	}
	sh.tx(func(tx *db.Tx) error {
		_, err := catalog.EnsureItems(tx, catalog.CS2, sh.keys)
		return err
	})
	return sh
}

func (s *shop) tx(fn func(tx *db.Tx) error) {
	s.Helper()
	if err := s.InTx(s.Context(), fn); err != nil {
		s.Error(err)
	}
}

// estimate estimates the prices of all items in a job of the given number of batches. It calls
// estimated with the items of each committed batch.
func (s *shop) estimate(price money.Micro, batches int, estimated func([]refresh.Item)) {
	s.Helper()
	var job int64
	s.tx(func(tx *db.Tx) (err error) {
		if job, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk, RequestedBy: "test"}); err != nil {
			return err
		}
		if _, err := refresh.StartJob(tx, job, batches, 0); err != nil {
			return err
		}
		items, err := refresh.ReadPlan(tx, refresh.Rules{Now: tx.Now(), Forced: true, ScopeAll: true})
		if err != nil {
			return err
		}
		if err := items.Write(tx, job, batches); err != nil {
			return err
		}
		_, err = refresh.StoreValidation(tx, job, nil, nil)
		return err
	})
	for s.estimateBatch(price, estimated) {
	}
	s.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, job) })
	s.tx(func(tx *db.Tx) error { _, err := refresh.FinishJob(tx, job, nil); return err })
}

func (s *shop) estimateBatch(price money.Micro, estimated func([]refresh.Item)) bool {
	s.Helper()
	var b *refresh.Batch
	s.tx(func(tx *db.Tx) (err error) {
		b, err = refresh.ClaimBatch(tx, "test")
		return err
	})
	if b == nil {
		return false
	}
	items, err := refresh.BatchItems(s.Context(), s.DB, *b)
	if err != nil {
		s.Fatal(err)
	}
	var done refresh.Estimates
	for _, i := range items {
		done.Items = append(done.Items, refresh.EstimatedItem{
			Item: i, State: refresh.ItemUpdated, Responded: true,
			Estimate: pricing.Priced{Price: price, Estimated: price},
		})
		done.Counts.Updated++
	}
	s.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, done); return err })
	estimated(items)
	return true
}

// querySum queries the sum of all versions each time, without the shortcut of
// catalog.KnownPriceVersion.
func querySum(ctx context.Context, d *db.DB) (sum int64, err error) {
	err = d.Read.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(version), 0) AS BIGINT) FROM price_version`).Scan(&sum)
	return sum, err
}

// TestLookup_IsNeverOlderThanTheLastCommit estimates rising prices while other goroutines look
// them up. A lookup after a commit must return the committed prices or later ones.
func TestLookup_IsNeverOlderThanTheLastCommit(t *testing.T) {
	rounds := randtest.Count(8, 400)
	n := randtest.Seed(t)
	for name, sum := range map[string]func(context.Context, *db.DB) (int64, error){
		"alone":              catalog.PriceVersion,
		"with other writers": querySum,
	} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t, 200)
			table := prices.New(s.DB)
			table.SetSum(sum)
			table.SetMost(150) // some buckets do not fit
			places := map[catalog.Key]int{}
			for i, k := range s.keys {
				places[k] = i
			}
			committed := make([]atomic.Int64, len(s.keys))
			var wg sync.WaitGroup
			stop := make(chan struct{})
			for reader := range 2 {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(n, uint64(reader)))
					for lookups := 0; ; lookups++ {
						select {
						case <-stop:
							if lookups > 0 {
								return
							}
						default:
						}
						readSome(t, table, s.keys, committed, random)
					}
				})
			}
			for round := range rounds {
				price := money.Micro(round + 1)
				s.estimate(price, 1+round%5, func(items []refresh.Item) {
					for _, i := range items {
						committed[places[i.Key]].Store(int64(price))
					}
					readSome(t, table, s.keys, committed, rand.New(rand.NewPCG(n, uint64(round))))
				})
			}
			close(stop)
			wg.Wait()
			if held := table.Held(); held == 0 || held > 150 {
				t.Errorf("got %d cached items, want 1 to 150", held)
			}
		})
	}
}

// readSome looks up some items and compares them with the prices committed before.
func readSome(t *testing.T, table *prices.Table, all []catalog.Key, committed []atomic.Int64, random *rand.Rand) {
	t.Helper()
	keys := make([]catalog.Key, 1+random.IntN(10))
	least := make([]int64, len(keys))
	for i := range keys {
		place := random.IntN(len(all))
		keys[i], least[i] = all[place], committed[place].Load()
	}
	responded := 0
	err := table.Lookup(context.Background(), keys, func(i int, p prices.Price, known bool) {
		responded++
		if !known || int64(p.Amount) < least[i] {
			t.Errorf("%v: got the price %d (known %t), want at least %d, which was committed before", keys[i], p.Amount, known, least[i])
		}
	})
	if err != nil || responded != len(keys) {
		t.Errorf("got %d of %d prices, error %v, want all", responded, len(keys), err)
	}
}

// Items that do not fit in memory are listed and counted like the others.
func TestList_IncludesItemsThatDoNotFit(t *testing.T) {
	s := openShop(t, 300)
	s.estimate(7, 3, func([]refresh.Item) {})
	all, some, none := prices.New(s.DB), prices.New(s.DB), prices.New(s.DB)
	some.SetMost(100)
	none.SetMost(0)
	f := prices.Filter{AppID: catalog.CS2}
	for _, o := range []prices.Order{{By: prices.ByName}, {By: prices.ByPrice, Descending: true}, {By: prices.ByStatus}, {By: prices.ByChange}} {
		want, err := all.List(t.Context(), &f, o, nil, 1000)
		if err != nil || len(want) != 300 {
			t.Fatalf("full table: got %d items, error %v, want 300", len(want), err)
		}
		for _, table := range []*prices.Table{all, some, none} {
			var got []prices.Entry
			var after *prices.Place
			for {
				next, err := table.List(t.Context(), &f, o, after, 70)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, next...); len(next) < 70 {
					break
				}
				after = new(o.PlaceOf(&next[69], time.Time{}))
			}
			if !slices.Equal(got, want) {
				t.Errorf("ordered by %v with room for %d: got %d items, want %d and the order of the full table", o, table.Most(), len(got), len(want))
			}
			n, err := table.Count(t.Context(), time.Time{})
			if err != nil || n.ByStatus[pricing.OK] != 300 || n.Held != 0 {
				t.Errorf("room for %d: got the counts %+v, error %v, want 300 items with status ok", table.Most(), n, err)
			}
		}
	}
}

func TestWords_MatchAnywhereIgnoringASCIICase(t *testing.T) {
	const name = "★ StatTrak™ AK-47 | Rédline (Field-Tested) "
	for search, want := range map[string]bool{
		"": true, " \t": true, "ak-47 stattrak": true, "REDLINE": false, "RéDLINE ★": true, "RÉDLINE": false, "field-tested) | (": true, "ak-47 m4a4": false,
	} {
		w, ok := prices.WordsOf(search)
		if !ok || w.In(name) != want {
			t.Errorf("search %q: got a match %t, words accepted %t, want %t, true", search, w.In(name), ok, want)
		}
	}
	if _, ok := prices.WordsOf("a b c d e f g h i j k l m n o p A B C"); !ok {
		t.Error("WordsOf rejects 16 different words, want them accepted")
	}
	if _, ok := prices.WordsOf("a b c d e f g h i j k l m n o p q"); ok {
		t.Error("WordsOf accepts 17 different words, want them rejected")
	}
}

func TestLookup_DistinguishesUnpricedFromUnknownItems(t *testing.T) {
	s := openShop(t, 4)
	table := prices.New(s.DB)
	s.estimate(7, 1, func([]refresh.Item) {})
	fresh := catalog.Key{AppID: catalog.CS2, Name: "new"}
	keys := []catalog.Key{s.keys[1], fresh, s.keys[0], s.keys[1], {AppID: catalog.Rust, Name: s.keys[0].Name}, {AppID: catalog.CS2, Name: s.keys[0].Name, Phase: "?"}}
	look := func() string {
		t.Helper()
		out := make([]string, len(keys))
		err := table.Lookup(t.Context(), keys, func(i int, p prices.Price, known bool) {
			out[i] = fmt.Sprint(p.Amount)
			if !known {
				out[i] = "-"
			}
			if p.Queued {
				out[i] += " queued"
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out, ", ")
	}
	if got, want := look(), "0.000007, -, 0.000007, 0.000007, -, -"; got != want {
		t.Errorf("prices: got %s, want %s", got, want)
	}
	for _, queue := range []bool{false, true} {
		s.tx(func(tx *db.Tx) error {
			items, err := catalog.EnsureItems(tx, catalog.CS2, []catalog.Key{fresh})
			if err != nil || !queue {
				return err
			}
			_, _, err = catalog.QueueMissing(tx, []int64{items[fresh].ID})
			return err
		})
		want := "0.000007, 0, 0.000007, 0.000007, -, -"
		if queue {
			want = "0.000007, 0 queued, 0.000007, 0.000007, -, -"
		}
		if got := look(); got != want {
			t.Errorf("prices: got %s, want %s", got, want)
		}
	}
}

func TestLookup_ReloadsOnlyChangedBuckets(t *testing.T) {
	s := openShop(t, 100)
	table := prices.New(s.DB)
	before := table.Contents()
	look := func() error {
		return table.Lookup(t.Context(), s.keys, func(int, prices.Price, bool) {})
	}
	used := map[int]bool{}
	for _, k := range s.keys {
		used[catalog.Bucket(k.Name)] = true
	}
	expect := func(what string, want int) {
		t.Helper()
		after, read := table.Contents(), 0
		for n := range after {
			if after[n] != before[n] {
				read++
			}
		}
		if read != want {
			t.Errorf("%s: got %d loaded buckets, want %d", what, read, want)
		}
		before = after
	}
	s.estimate(1, 1, func([]refresh.Item) {})
	if err := look(); err != nil {
		t.Fatal(err)
	}
	expect("at first", len(used))
	if err := look(); err != nil {
		t.Fatal(err)
	}
	expect("again", 0)
	left := len(used)
	s.estimate(2, 8, func(items []refresh.Item) {
		touched := map[int]bool{}
		for _, i := range items {
			touched[catalog.Bucket(i.Key.Name)] = true
		}
		left -= len(touched)
		if err := look(); err != nil {
			t.Fatal(err)
		}
		expect("after a batch", len(touched))
	})
	if left != 0 {
		t.Errorf("got %d buckets without an estimate, want none", left)
	}
	s.estimate(3, 1, func([]refresh.Item) {})
	rename := func(from, to string) {
		t.Helper()
		s.tx(func(tx *db.Tx) error { _, err := tx.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to); return err })
	}
	rename("item", "gone") // makes each load of a bucket fail
	want := prices.BucketPrices(t.Context(), s.DB, []int{catalog.Bucket(s.keys[0].Name)}, 1, func(int64, catalog.Key, prices.Price) {})
	if want == nil {
		t.Fatal("loading a bucket succeeded, want an error")
	}
	if err := look(); err == nil || err.Error() != "read prices of a bucket: "+want.Error() {
		t.Errorf("got error %v, want %v", err, want)
	}
	rename("gone", "item")
	if err := look(); err != nil {
		t.Errorf("read after a failed one: got error %v, want none", err)
	}
}

// TestRenew_ReloadsChangedBucketsInUse renews the buckets after an estimate. The next lookup loads
// nothing. A bucket that no call has requested is not loaded.
func TestRenew_ReloadsChangedBucketsInUse(t *testing.T) {
	s := openShop(t, 100)
	table := prices.New(s.DB)
	s.estimate(1, 1, func([]refresh.Item) {})
	if err := table.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := table.Held(); got != 0 {
		t.Errorf("items in memory before the first lookup: got %d, want 0", got)
	}
	look := func() (sum money.Micro) {
		t.Helper()
		if err := table.Lookup(t.Context(), s.keys, func(_ int, p prices.Price, _ bool) { sum += p.Amount }); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	look()
	s.estimate(2, 4, func([]refresh.Item) {})
	if err := table.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := table.Contents()
	if got, want := look(), money.Micro(2*len(s.keys)); got != want {
		t.Errorf("sum of all prices: got %v, want %v", got, want)
	}
	if table.Contents() != before {
		t.Error("the lookup after Renew loaded a bucket, want none")
	}
}
