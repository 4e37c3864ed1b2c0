package main

import (
	"database/sql"
	"flag"
	"testing"
	"time"
)

// trades is how many the leaderboard is of.
var trades = flag.Int("trades", 1_000_000, "completed trades that the leaderboard is of")

const (
	tradersRate = 100 // requests a second
	tradersTime = 30 * time.Second
	tradersPath = "/api/community/top-traders?period=30d&by=counterparties"
)

// BenchmarkTopTraders asks a server, within this process, for its leaderboard on a
// schedule while trades go on being completed, so that it is made anew as often as
// it ever is: of a million trades between twenty thousand users within ninety days,
// hardly any two of the same pair, which is as many rows as there can be.
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
	if err := w.server.call(b.Context(), "GET", tradersPath, nil, nil); err != nil { // the first one waits for it
		b.Fatal(err)
	}
	defer startProfile(b)()
	var latencies []time.Duration
	for b.Loop() {
		done, traded := make(chan struct{}), make(chan struct{})
		time.AfterFunc(tradersTime, func() { close(done) })
		go func() {
			defer close(traded)
			trade(b, db, done)
		}()
		some, err := w.server.ask(b.Context(), tradersPath, tradersRate, done)
		if err != nil {
			b.Fatal(err)
		}
		<-traded
		latencies = append(latencies, some...)
	}
	for name, percent := range map[string]int{"p50-ms": 50, "p99-ms": 99, "worst-ms": 100} {
		b.ReportMetric(float64(quantile(latencies, percent).Microseconds())/1000, name)
	}
}

// trade says again and again that a trade was completed, until done.
func trade(b *testing.B, db *sql.DB, done <-chan struct{}) {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
		}
		if _, err := db.ExecContext(b.Context(), `
			INSERT INTO trader_version (slot, version) VALUES (0, 1)
			ON CONFLICT (slot) DO UPDATE SET version = trader_version.version + 1`); err != nil {
			b.Error(err)
			return
		}
	}
}

// fillTraders writes what is kept of trades for the leaderboard, and nothing of the
// trades themselves: it is not made of them.
func fillTraders(b *testing.B, e engine, db *sql.DB) {
	b.Helper()
	if _, ok := e.(sqlite); ok { // opened for reading
		if _, err := db.ExecContext(b.Context(), `PRAGMA query_only = 0`); err != nil {
			b.Fatal(err)
		}
	}
	const users, days, firstKey = 20_000, 90, 1_000_000
	for _, day := range []string{"day", "0"} {
		if _, err := db.ExecContext(b.Context(), `
			INSERT INTO trader_pair (day, user_key, other_key, trades, reversed, volume, ranked)
			WITH RECURSIVE n (i) AS (SELECT CAST(0 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1),
			trade (day, seller, buyer, volume) AS (
				SELECT $2 - i % $3, $4 + i * 7919 % $5, $4 + (i * 104729 + i / $5 + 1) % $5, (1 + i % 1000) * 1000000 FROM n)
			SELECT `+day+`, seller, buyer, count(*), 0, sum(volume), sum(volume)
			FROM (SELECT day, seller, buyer, volume FROM trade UNION ALL SELECT day, buyer, seller, volume FROM trade) sides
			WHERE seller <> buyer GROUP BY 1, seller, buyer`,
			*trades, time.Now().Unix()/(24*60*60), days, firstKey, users); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.ExecContext(b.Context(), `
		INSERT INTO platform_user (id, user_id, display_name, created_at)
		SELECT user_key, 'trader' || user_key, 'Trader ' || user_key, 0 FROM trader_pair WHERE day = 0 GROUP BY user_key`); err != nil {
		b.Fatal(err)
	}
}
