package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"runtime/pprof"
	"testing"

	"assay/internal/app"
	"assay/internal/config"
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

// profile takes a file name: unlike -cpuprofile it leaves the filling out.
var profile = flag.String("refreshprofile", "", "write a CPU profile of the measured refreshes to this file")

// BenchmarkRefresh runs refreshes of work R within this process, so that they
// can be profiled:
//
//	go test ./bench -run '^$' -bench Refresh -benchtime 3x -refreshprofile /tmp/cpu.out
func BenchmarkRefresh(b *testing.B) {
	ctx := b.Context()
	w := &world{size: size{names: 30_000, markets: 10, rows: 1_000_000}, dir: b.TempDir()}
	var err error
	if w.sim, err = startSimulator(ctx, w.names, w.markets); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.sim.close() }()
	env, err := w.sim.env(ctx, w.dir)
	if err != nil {
		b.Fatal(err)
	}
	if w.server, err = newServer(ctx, "", w.dir, env); err != nil {
		b.Fatal(err)
	}
	end := within(b, w.server)
	defer end()
	if err := w.fill(ctx); err != nil {
		b.Fatal(err)
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			b.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	for b.Loop() {
		b.StopTimer()
		if err := w.sim.advance(ctx); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, _, err := w.server.refresh(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// within runs a prepared server in this process. The function that it returns
// ends it.
func within(b *testing.B, s *server) (end func()) {
	b.Helper()
	cfg, err := config.Load(config.Options{
		Environ: append([]string{"DATA_DIR=" + s.dir, "LISTEN_ADDR=" + s.addr}, s.env...), Sources: app.Sources(),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.New(ctx, app.Options{Config: cfg, Version: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	s.run(func() error { return a.Run(ctx) })
	<-a.Ready()
	if err := s.readToken(); err != nil {
		b.Fatal(err)
	}
	return func() {
		cancel()
		<-s.done
		if s.exit != nil {
			b.Error(s.exit)
		}
	}
}
