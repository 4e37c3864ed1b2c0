package main

import (
	"database/sql"
	"flag"
	"strconv"
	"testing"
	"time"
)

// trades is the number of trades in the leaderboard.
var trades = flag.Int("trades", 1_000_000, "number of completed trades in the leaderboard")

const (
	tradersRate  = 100 // requests per second
	completeRate = 20  // trades per second
	tradersTime  = 30 * time.Second
	tradersPath  = "/api/community/top-traders?period=30d&by=counterparties"
	traders      = 20_000
	firstTrader  = 1_000_000 // first user key
)

// BenchmarkTopTraders requests the leaderboard at a fixed rate from a server in this process.
// Trades complete at the same time, so that the server updates the leaderboard as often as possible.
// The leaderboard includes a million trades between twenty thousand users within ninety days. Nearly
// all trades are between different pairs of users, which gives the maximum number of rows.
//
//	go test ./bench -run '^$' -bench TopTraders -benchtime 1x -database postgres
func BenchmarkTopTraders(b *testing.B) {
	w := worldWithin(b, size{names: 100, markets: 1, rows: 100})
	db, err := w.engine.open(w.server)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	fillTraders(b, w.engine, db)
	pending := pendingTrades(b, w, db)
	first := awaitRanking(b, w.server)
	w.countStatements(b)
	defer startProfile(b)()
	var latencies, completed []time.Duration
	for b.Loop() {
		done, traded := make(chan struct{}), make(chan struct{})
		time.AfterFunc(tradersTime, func() { close(done) })
		go func() {
			defer close(traded)
			completed = append(completed, complete(b, w.server, &pending, done)...)
		}()
		some, err := w.server.requestAtRate(b.Context(), tradersPath, tradersRate, done)
		if err != nil {
			b.Fatal(err)
		}
		<-traded
		latencies = append(latencies, some...)
	}
	for name, percent := range map[string]int{"p50-ms": 50, "p99-ms": 99, "worst-ms": 100} {
		b.ReportMetric(float64(quantile(latencies, percent).Microseconds())/1000, name)
	}
	b.ReportMetric(first.Seconds(), "first-s")
	w.logStatements(b)
	b.ReportMetric(float64(quantile(completed, 99).Microseconds())/1000, "complete-p99-ms")
}

// complete completes pending trades at a fixed rate until done is closed. It returns how long each
// completion took.
func complete(b *testing.B, s *server, pending *[]int64, done <-chan struct{}) (took []time.Duration) {
	t := time.NewTicker(time.Second / completeRate)
	defer t.Stop()
	for len(*pending) > 0 {
		select {
		case <-done:
			return took
		case <-t.C:
		}
		id := (*pending)[0]
		*pending = (*pending)[1:]
		start := time.Now()
		if err := s.call(b.Context(), "POST", "/api/trades/"+strconv.FormatInt(id, 10)+"/complete", nil, nil); err != nil {
			b.Error(err)
			return took
		}
		took = append(took, time.Since(start))
	}
	return took
}

// pendingTrades creates trades to complete and returns their IDs. The traders are not in the
// leaderboard.
func pendingTrades(b *testing.B, w *world, db *sql.DB) (ids []int64) {
	b.Helper()
	w.enrich(b)
	const runs = 3
	if err := w.sendAll(w.listed(b, 1, runs*completeRate*int(tradersTime/time.Second)), 16); err != nil {
		b.Fatal(err)
	}
	if err := eachRow(b.Context(), db, `SELECT id FROM trade ORDER BY id`, func(_ int, scan func(...any) error) error {
		ids = append(ids, 0)
		return scan(&ids[len(ids)-1])
	}); err != nil {
		b.Fatal(err)
	}
	return ids
}

// awaitRanking waits until the leaderboard includes the inserted trades.
func awaitRanking(b *testing.B, s *server) time.Duration {
	b.Helper()
	start := time.Now()
	if err := s.poll(b.Context(), 10*time.Millisecond, 5*time.Minute, func() (bool, error) {
		var top struct{ Items []struct{} }
		err := s.call(b.Context(), "GET", tradersPath, nil, &top)
		return len(top.Items) > 0, err
	}); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// fillTraders writes the rows that the server computes the leaderboard from. It writes no trades.
func fillTraders(b *testing.B, e engine, db *sql.DB) {
	b.Helper()
	if _, ok := e.(sqlite); ok { // open opens SQLite read-only
		if _, err := db.ExecContext(b.Context(), `PRAGMA query_only = 0`); err != nil {
			b.Fatal(err)
		}
	}
	const days = 90
	for _, day := range []string{"day", "0"} {
		if _, err := db.ExecContext(b.Context(), `
			INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked)
			WITH RECURSIVE n (i) AS (SELECT CAST(0 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1),
			trade (day, seller, buyer, volume) AS (
				SELECT $2 - i % $3, $4 + i * 7919 % $5, $4 + (i * 104729 + i / $5 + 1) % $5, (1 + i % 1000) * 1000000 FROM n)
			SELECT `+day+`, seller, buyer, count(*), 0, sum(volume), sum(volume)
			FROM (SELECT day, seller, buyer, volume FROM trade UNION ALL SELECT day, buyer, seller, volume FROM trade) sides
			WHERE seller <> buyer GROUP BY 1, seller, buyer`,
			*trades, time.Now().Unix()/(24*60*60), days, firstTrader, traders); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.ExecContext(b.Context(), `
		INSERT INTO platform_user (id, user_id, display_name, created_at)
		SELECT user_key, 'trader-' || (user_key - $1), 'Trader ' || user_key, 0 FROM trader_pair WHERE day = 0 GROUP BY user_key`, firstTrader); err != nil {
		b.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO trader (user_key, slot, version) SELECT user_key, 0, 1 FROM trader_pair WHERE day = 0 GROUP BY user_key`,
		`INSERT INTO trader_version (slot, version) VALUES (0, 1)`,
	} {
		if _, err := db.ExecContext(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
}
