package view_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestMain(m *testing.M) { os.Exit(dbtest.RunOnEngines(m)) }

// world is a store with readers and a clock.
type world struct {
	testing.TB
	*view.JobReader
	*view.ItemReader
	*view.HistoryReader
	*view.FeedReader
	*view.UserReader
	stream  *view.Stream
	store   *db.DB
	now     time.Time
	learned []refresh.Learned               // learned by each new job
	quotes  func() []refresh.MarketSnapshot // quotes of each estimated item; nil: unchanged
	rateSet int64                           // exchange rates of the next estimates
}

func newWorld(tb testing.TB, scopeAll bool) *world {
	tb.Helper()
	w := &world{TB: tb, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.quotes = func() []refresh.MarketSnapshot { return nil }
	now := func() time.Time { return w.now }
	d := dbtest.NewDatabase(tb)
	s, err := db.Open(tb.Context(), db.Options{Path: d.Path, URL: d.URL, Now: now})
	w.must(err)
	tb.Cleanup(func() { w.must(s.Close()) })
	w.store = s
	w.read(view.Options{Store: s, ScopeAll: scopeAll, Currency: "USD", Now: now})
	return w
}

func (w *world) read(o view.Options) {
	r := view.New(o)
	w.JobReader, w.ItemReader, w.HistoryReader, w.FeedReader, w.UserReader = r.Jobs, r.Items, r.History, r.Feeds, r.Users
	var err error
	w.stream, err = w.OpenStream(w.Context(), view.EventForm{})
	w.must(err)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) tx(fn func(tx *db.Tx) error) {
	w.Helper()
	w.must(w.store.InTx(w.Context(), fn))
}

// own pushes a user's inventory with one asset of each name.
func (w *world) own(user string, names ...string) {
	w.Helper()
	s := inventory.Service{InTx: w.store.InTx, Queued: func() {}, Inspectable: func() {}}
	push := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: w.now}
	for i, name := range names {
		push.Assets = append(push.Assets, inventory.Asset{AssetID: fmt.Sprint(i), Name: name, Amount: 1})
	}
	_, err := s.Sync(w.Context(), user, push, inventory.Normal)
	w.must(err)
}

// begin starts a bulk job with the given number of batches, up to its estimate stage.
func (w *world) begin(batches int) (id int64) {
	w.Helper()
	w.tx(func(tx *db.Tx) (err error) {
		if id, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk}); err != nil {
			return err
		}
		if _, err := refresh.StartJob(tx, id, batches, 0); err != nil {
			return err
		}
		r := refresh.Rules{Now: w.now, TTL: 6 * time.Hour, NoSalesRetry: 72 * time.Hour}
		items, err := refresh.ReadPlan(tx, r)
		if err != nil {
			return err
		}
		if err := items.Write(tx, id, batches); err != nil {
			return err
		}
		_, err = refresh.StoreValidation(tx, id, nil, w.learned)
		return err
	})
	return id
}

// estimate estimates the next batch with these prices. Items missing from the map get no
// quote. It returns false if there is no batch.
func (w *world) estimate(prices map[string]money.Micro) bool {
	w.Helper()
	estimates := map[string]pricing.Priced{}
	for name, price := range prices {
		estimates[name] = pricing.Priced{Price: price, Estimated: price}
	}
	return w.estimateWith(estimates)
}

// estimateWith estimates the next batch with these estimates. Items missing from the map get
// no quote. It returns false if there is no batch.
func (w *world) estimateWith(estimates map[string]pricing.Priced) bool {
	w.Helper()
	var b *refresh.Batch
	w.tx(func(tx *db.Tx) (err error) {
		b, err = refresh.ClaimBatch(tx, "test")
		return err
	})
	if b == nil {
		return false
	}
	items, err := refresh.BatchItems(w.Context(), w.store, *b)
	w.must(err)
	s := refresh.Estimates{MissingRetry: time.Hour, RateSet: w.rateSet}
	for _, i := range items {
		estimate := estimates[i.Key.Name]
		out := refresh.EstimatedItem{Item: i, Responded: true, AsOf: w.now, QuotedAt: w.now, State: refresh.ItemUpdated, NewQuotes: w.quotes()}
		out.Estimate = estimate
		if estimate.Price == 0 {
			out.State, out.Estimate.Price, out.Estimate.Status = refresh.ItemNoQuote, i.Price, pricing.NoPrice
			if i.Price > 0 {
				out.Estimate.Status = pricing.Stale
			}
			s.Counts.NoQuote++
		} else {
			s.Counts.Updated++
		}
		if estimate.UsedMarkets > 0 {
			out.Used = usedMarkets(out.NewQuotes)
		}
		s.Items = append(s.Items, out)
	}
	w.tx(func(tx *db.Tx) error { _, err := refresh.StoreEstimates(tx, *b, s); return err })
	return true
}

// usedMarkets returns the market ids of the used quotes, in the format of a price point.
func usedMarkets(quotes []refresh.MarketSnapshot) string {
	var ids []string
	for _, q := range quotes {
		if q.Reason == pricing.Used {
			ids = append(ids, fmt.Sprint(q.MarketID))
		}
	}
	return strings.Join(ids, ",")
}

// end ends a job after its last batch.
func (w *world) end(id int64) {
	w.Helper()
	w.tx(func(tx *db.Tx) error {
		if err := refresh.EndEstimating(tx, id); err != nil {
			return err
		}
		_, err := refresh.FinishJob(tx, id, nil)
		return err
	})
}

// price runs a job that sets prices.
func (w *world) price(prices map[string]money.Micro) {
	w.Helper()
	id := w.begin(1)
	for w.estimate(prices) {
	}
	w.end(id)
}

func (w *world) status() view.Status {
	w.Helper()
	s, err := w.Status(w.Context())
	w.must(err)
	return s
}
