package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"assay/internal/app"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == simulatorCommand {
		if err := serveSimulator(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// profile is a file name. Unlike -cpuprofile, the profile does not include the set-up.
var profile = flag.String("profile", "", "write a CPU profile of the measured code to this file")

// database selects the database of worlds.
var database = flag.String("database", "sqlite", "database: sqlite or postgres")

// rowCount is the number of inventory rows. With few rows, a benchmark is set up sooner.
var rowCount = flag.Int("rows", 0, "inventory rows of BenchmarkRefresh (default 1,000,000) and BenchmarkPartitions (default 10,000,000)")

// unchanged makes the markets return the same prices in each refresh.
var unchanged = flag.Bool("unchanged", false, "BenchmarkRefresh: prices do not change")

// BenchmarkRefresh runs refreshes of work R in this process, to profile them:
//
//	go test ./bench -run '^$' -bench Refresh -benchtime 3x -profile /tmp/cpu.out
//
// It prints the processor time of this process and of PostgreSQL, which depends less on the
// load of the machine than the time that a refresh takes. With -database postgres it also
// prints the statements with the highest total time.
func BenchmarkRefresh(b *testing.B) {
	w := worldWithin(b, size{names: 30_000, markets: 10, rows: cmp.Or(*rowCount, 1_000_000)})
	w.countStatements(b)
	defer startProfile(b)()
	var own, server time.Duration
	for b.Loop() {
		b.StopTimer()
		if !*unchanged {
			if err := w.sim.advance(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		ownBefore, serverBefore := w.processorTimes(b)
		b.StartTimer()
		if _, _, err := w.server.refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
		ownAfter, serverAfter := w.processorTimes(b)
		own, server = own+ownAfter-ownBefore, server+serverAfter-serverBefore
	}
	b.ReportMetric(float64(own.Milliseconds())/float64(b.N), "own-cpu-ms/op")
	b.ReportMetric(float64(server.Milliseconds())/float64(b.N), "server-cpu-ms/op")
	w.logStatements(b)
}

// processorTimes returns the processor time of this process and of PostgreSQL so far.
func (w *world) processorTimes(b *testing.B) (own, server time.Duration) {
	b.Helper()
	times, err := readTimes("self")
	if err != nil {
		b.Fatal(err)
	}
	if e, ok := w.engine.(postgres); ok {
		if server, err = e.processorTime(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return times.own, server
}

// countStatements resets PostgreSQL's statement statistics.
func (w *world) countStatements(b *testing.B) {
	b.Helper()
	if e, ok := w.engine.(postgres); ok {
		if _, err := e.admin.ExecContext(b.Context(), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()`); err != nil {
			b.Fatal(err)
		}
	}
}

// logStatements prints PostgreSQL's time per statement, divided by the number of refreshes.
func (w *world) logStatements(b *testing.B) {
	b.Helper()
	e, ok := w.engine.(postgres)
	if !ok {
		return
	}
	err := eachRow(b.Context(), e.admin, `
		SELECT total_exec_time, calls, rows, wal_bytes::bigint, left(regexp_replace(query, '\s+', ' ', 'g'), 120)
		FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 20`, func(_ int, scan func(...any) error) error {
		var total float64 // milliseconds
		var calls, rows, wal int
		var query string
		if err := scan(&total, &calls, &rows, &wal, &query); err != nil {
			return err
		}
		b.Logf("%6.0f ms, %5d calls, %9s rows, %6s of log: %s", total/float64(b.N), calls/b.N, count(rows/b.N), mebibytes(int64(wal/b.N)), query)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLookup sends lookups of one item and of a hundred items to a server in this
// process, for one second per iteration. It prints the processor time of a lookup, in this process
// (client included) and in PostgreSQL. This depends less on other load than the rate.
func BenchmarkLookup(b *testing.B) {
	w := &filled{world: worldWithin(b, size{names: 30_000, markets: 2, rows: 30_000})}
	for _, items := range []int{1, 100} {
		b.Run(fmt.Sprint(items), func(b *testing.B) {
			requests, err := w.lookupRequests(w.server.addr, items)
			if err != nil {
				b.Fatal(err)
			}
			w.countStatements(b)
			defer startProfile(b)()
			var rate, lookups float64
			ownBefore, serverBefore := w.processorTimes(b)
			for b.Loop() {
				if rate, err = flood(b.Context(), w.server.addr, requests, time.Second); err != nil {
					b.Fatal(err)
				}
				lookups += rate // each iteration takes a second
			}
			own, server := w.processorTimes(b)
			b.ReportMetric(rate, "lookups/s")
			b.ReportMetric(float64((own-ownBefore).Nanoseconds())/lookups/1e3, "own-cpu-us/lookup")
			b.ReportMetric(float64((server-serverBefore).Nanoseconds())/lookups/1e3, "server-cpu-us/lookup")
			w.logStatements(b)
		})
	}
}

// BenchmarkSync pushes new inventories to a server in this process. Half of the names are
// known, and the server does not refresh prices. It alternates with hand-written SQL for the
// same rows. Like BenchmarkRefresh, it prints PostgreSQL's time for both.
func BenchmarkSync(b *testing.B) {
	world, end := startWithin(b, size{names: 30_000, markets: 2, rows: 300_000})
	end()
	w := &filled{world: world}
	var err error
	if w.floor, err = w.engine.clone(b.Context(), w.server); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.floor.Close() }()
	known, err := knownItems(b.Context(), w.floor)
	if err != nil {
		b.Fatal(err)
	}
	w.server.env = w.database
	b.Cleanup(runInProcess(b, w.server))
	w.countStatements(b)
	defer startProfile(b)()
	var ratios []float64
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		work := newSync(n, known)
		body, err := pushBody(work.at, work.assets)
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := w.engine.syncFloor(b.Context(), w.floor, work); err != nil {
			b.Fatal(err)
		}
		floor := time.Since(began)
		b.StartTimer()
		took, err := w.timePush(b.Context(), work.user, body, synced{Added: syncItems, QueuedNames: syncItems / 2})
		if err != nil {
			b.Fatal(err)
		}
		ratios = append(ratios, quotient(took, floor))
	}
	b.ReportMetric(median(ratios), "floors/sync")
	w.logStatements(b)
}

// startProfile starts a profile if -profile is set. The returned function stops it.
func startProfile(b *testing.B) (end func()) {
	b.Helper()
	if *profile == "" {
		return func() {}
	}
	f, err := os.Create(*profile)
	if err != nil {
		b.Fatal(err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		b.Fatal(err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}

// worldWithin returns a world with a server in this process. The world ends with the
// benchmark.
func worldWithin(b testing.TB, z size) *world {
	b.Helper()
	w, end := startWithin(b, z)
	b.Cleanup(end)
	return w
}

// startWithin is like worldWithin, but the returned function ends the server.
func startWithin(b testing.TB, z size) (w *world, end func()) {
	b.Helper()
	ctx := b.Context()
	w = &world{size: z, dir: b.TempDir(), engine: sqlite{}}
	var err error
	if *database == "postgres" {
		e, err := startPostgres("shared_preload_libraries=pg_stat_statements")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = e.close() })
		w.engine = e
	}
	if w.database, err = w.engine.prepare(ctx, w.dir); err != nil {
		b.Fatal(err)
	}
	if w.sim, err = startSimulator(ctx, w.names, w.markets); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.sim.close() })
	env, err := w.sim.env(ctx, w.dir)
	if err != nil {
		b.Fatal(err)
	}
	if w.server, err = newServer(ctx, "", w.dir, slices.Concat(w.database, env)); err != nil {
		b.Fatal(err)
	}
	end = runInProcess(b, w.server)
	if err := w.fill(ctx); err != nil {
		end()
		b.Fatal(err)
	}
	return w, end
}

// runInProcess runs a prepared server in this process. The returned function stops it.
func runInProcess(b testing.TB, s *server) (end func()) {
	b.Helper()
	stop, err := s.runInProcess(app.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if err := stop(); err != nil {
			b.Error(err)
		}
	}
}
