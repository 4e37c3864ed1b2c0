package refresh

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pgtest"
	"assay/internal/pricing"
)

// someQuotes returns random quotes of an item, by market.
func someQuotes(r *rand.Rand) []MarketSnapshot {
	quotes := make([]MarketSnapshot, r.IntN(12))
	for i := range quotes {
		q := &quotes[i]
		q.MarketID, q.Currency = int64(i*7+1), []money.Currency{"USD", "CNY", "EUR"}[r.IntN(3)]
		q.Ask, q.Bid, q.Sale = money.Micro(r.Int64N(1e13)), money.Micro(r.Int64N(5)), money.Micro(r.Int64N(1e6))
		q.Listings, q.Sales = r.Int64N(1e5)-1, r.Int64N(3)-1
		q.SalesWindow = time.Duration(r.IntN(1e6)) * time.Second
		if r.IntN(2) == 0 {
			q.MarketTime = time.Unix(r.Int64N(1e6)*3600, 0).UTC()
		}
		if r.IntN(2) == 0 {
			q.FetchedAt = time.UnixMicro(1e15 + r.Int64N(1e12)).UTC()
		}
		q.Reason = []pricing.Reason{pricing.Used, pricing.Outlier, pricing.Awaiting}[r.IntN(3)]
	}
	return quotes
}

func TestQuotes_RoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		want := someQuotes(r)
		text := encodeQuotes(want)
		if !json.Valid([]byte(text)) {
			t.Fatalf("got the encoded quotes %s, want JSON", text)
		}
		got, err := DecodeQuotes(text)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: got the quotes %v, error %v, want %v", text, got, err, want)
		}
	}
}

func TestQuotes_DamagedTextIsAnError(t *testing.T) {
	text := encodeQuotes([]MarketSnapshot{{MarketID: 1, Currency: "USD", Ask: 12}, {MarketID: 22, Currency: "EUR"}})
	for end := 1; end < len(text); end++ {
		if got, err := DecodeQuotes(text[:end]); err == nil {
			t.Errorf("truncated text %q: got the quotes %v, want an error", text[:end], got)
		}
	}
	for _, bad := range []string{"{}", "x", "[1]", "[[]]", text + "]", `[[1,"USD",99999999999999999999,0,0,0,0,0,0,0,""]]`} {
		if got, err := DecodeQuotes(bad); err == nil {
			t.Errorf("invalid text %q: got the quotes %v, want an error", bad, got)
		}
	}
}

// FuzzQuotes checks that invalid text causes an error and no panic.
func FuzzQuotes(f *testing.F) {
	f.Add("[]")
	f.Add(encodeQuotes(someQuotes(rand.New(rand.NewPCG(2, 2)))))
	f.Fuzz(func(t *testing.T, text string) {
		quotes, err := DecodeQuotes(text)
		if err != nil {
			return
		}
		if again, err := DecodeQuotes(encodeQuotes(quotes)); err != nil || !slices.Equal(again, quotes) {
			t.Errorf("%q: got the quotes %v, and %v (error %v) after encoding and decoding them, want the same quotes", text, quotes, again, err)
		}
	})
}

func TestMarketSnapshot_ShowsTheStoredQuotesOnBothEngines(t *testing.T) {
	quotes := []MarketSnapshot{
		{
			MarketID: 3, Currency: "CNY", Ask: 1, Bid: 2, Sale: 3, Listings: -1, Sales: 4, SalesWindow: time.Minute,
			MarketTime: time.Unix(7200, 0).UTC(), FetchedAt: time.UnixMicro(5).UTC(), Reason: pricing.Outlier,
		},
		{MarketID: 4, Currency: "USD", Ask: 10_000_000_000_000},
	}
	for _, o := range []db.Options{{Path: filepath.Join(t.TempDir(), "a.db")}, {URL: pgtest.Shared(t).NewDatabase(t)}} {
		s, err := db.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.InTx(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO item_quotes (item_id, quotes) VALUES (9, $1), (10, '[]')`, encodeQuotes(quotes))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := db.Collect(t.Context(), s.Read, func(r *sql.Rows, text *string) error {
			var item, market, ask, bid, sale, listings, sales, window, marketTime, fetched int64
			var currency, reason string
			err := r.Scan(&item, &market, &currency, &ask, &bid, &sale, &listings, &sales, &window, &marketTime, &fetched, &reason)
			*text = fmt.Sprint(item, market, currency, ask, bid, sale, listings, sales, window, marketTime, fetched, reason)
			return err
		}, `SELECT item_id, market_id, currency, ask, bid, sale, listings, sales, sales_window, market_time, fetched_at, reason
			FROM market_snapshot ORDER BY item_id, market_id`)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			fmt.Sprint(9, 3, "CNY", 1, 2, 3, -1, 4, 60, 7_200_000_000, 5, "outlier"),
			fmt.Sprint(9, 4, "USD", 10_000_000_000_000, 0, 0, 0, 0, 0, 0, 0, ""),
		}
		if !slices.Equal(rows, want) {
			t.Errorf("rows of the view: got %v, want %v", rows, want)
		}
	}
}
