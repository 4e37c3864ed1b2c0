// Command bench compares Assay with floors. A floor is hand-written SQL for the same net
// writes, measured at the same time on the same machine. Therefore a slow or busy machine
// affects both equally. docs/contribute/performance.md describes the measurements.
//
// The program under test and the market simulator run in separate processes. All files are in
// a temporary directory, which is removed at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"assay/internal/pgtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // a separate program
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) > 0 && args[0] == simulatorCommand {
		return serveSimulator(ctx, args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == peerCommand {
		return servePeer(ctx, os.Stdin, os.Stdout)
	}
	b, err := newBench(args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	err = b.measure(ctx)
	if b.json {
		return errors.Join(err, b.results.printJSON(os.Stdout))
	}
	return errors.Join(err, b.results.print(os.Stdout))
}

// bench is one run of this program.
type bench struct {
	binary  string
	temp    string
	size    size
	runs    int
	long    bool
	load    time.Duration
	json    bool
	only    []string
	engines []string
	engine  engine // engine of the current measurement
	report

	shared *filled // created when first needed
}

func newBench(args []string) (*bench, error) {
	b := &bench{report: report{log: os.Stderr}}
	var only, engines string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&b.binary, "assay", "bin/assay", "the program to measure (built by make build)")
	f.IntVar(&b.size.names, "names", 30_000, "number of names in work R")
	f.IntVar(&b.size.markets, "markets", 10, "number of markets in work R")
	f.IntVar(&b.size.rows, "rows", 1_000_000, "number of inventory rows in work R")
	f.IntVar(&b.runs, "runs", 0, "number of runs; the result is their median (default 3, with -long 5)")
	f.BoolVar(&b.long, "long", false, "do more runs and the largest size of T5, which takes many minutes")
	f.DurationVar(&b.load, "load", 10*time.Minute, "duration of T13, which runs only with -only T13 or -long")
	f.StringVar(&only, "only", "", "comma-separated measurements: T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14, T15 (default all except T13)")
	f.StringVar(&engines, "engines", strings.Join(engineNames, ","), "comma-separated databases")
	f.BoolVar(&b.json, "json", false, "print JSON instead of a table")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if b.runs == 0 {
		b.runs = 3
		if b.long {
			b.runs = 5
		}
	}
	b.engines = strings.Split(engines, ",")
	if only != "" {
		b.only = strings.Split(strings.ToUpper(only), ",")
	}
	if _, err := os.Stat(b.binary); err != nil {
		return nil, fmt.Errorf("%w: run make build", err)
	}
	var err error
	b.temp, err = os.MkdirTemp("", "assay-bench-")
	return b, err
}

// engineNames are the supported databases, in order of measurement.
var engineNames = []string{"sqlite", "postgres"}

// measure takes the requested measurements on each database. A failed measurement does not
// affect the others.
func (b *bench) measure(ctx context.Context) error {
	var errs []error
	once := map[string]bool{}
	for _, name := range b.engines {
		if ctx.Err() != nil {
			break
		}
		var err error
		if b.engine, err = newEngine(name, &b.report); err != nil {
			errs = append(errs, err)
			continue
		}
		if b.engine == nil {
			continue
		}
		errs = append(errs, b.measureEngine(ctx, once), b.closeShared(), b.engine.close())
	}
	return errors.Join(errs...)
}

// newEngine starts a database engine. If the engine is not installed, newEngine reports this and
// returns nil.
func newEngine(name string, r *report) (engine, error) {
	switch name {
	case "sqlite":
		return sqlite{}, nil
	case "postgres":
		e, err := startPostgres()
		if errors.Is(err, pgtest.ErrNotInstalled) {
			r.skip("T1", "everything on PostgreSQL", "not installed: postgresql")
			return nil, nil //nolint:nilnil // not installed
		}
		return e, err
	default:
		return nil, fmt.Errorf("unknown database %q: use %s", name, strings.Join(engineNames, " or "))
	}
}

// measurement is a function that measures the targets in ids. If once is set, the result does not
// depend on the database, and the function runs only on the first database.
type measurement struct {
	ids  []string
	once bool
	take func(context.Context) error
}

func (b *bench) measurements() []measurement {
	all := []measurement{
		{[]string{b.engine.refreshID(), "T3"}, false, b.measureRefresh},
		{[]string{"T4"}, false, b.measureUnchanged},
		{[]string{"T8"}, false, b.measureLookup},
		{[]string{"T9"}, false, b.measureStatus},
		{[]string{"T11"}, false, b.measureStart},
		{[]string{"T7"}, false, b.measureSync},
		{[]string{"T3"}, false, b.measureWide},
		{[]string{"T5"}, false, b.measureGrowth},
		{[]string{"T6"}, true, b.measureRequests},
		{[]string{"T12"}, false, b.measureHistory},
		{[]string{"T14", "T15"}, false, b.measureFeed},
	}
	if _, ok := b.engine.(postgres); ok { // several processes can use PostgreSQL
		all = append(all, measurement{[]string{"T10"}, true, b.measureInstances})
	}
	if b.long || slices.Contains(b.only, "T13") {
		all = append(all, measurement{[]string{"T13"}, false, b.measureLoad})
	}
	return all
}

// measureEngine takes the measurements on the current engine. once contains the measurements that run
// only once and have run.
func (b *bench) measureEngine(ctx context.Context, once map[string]bool) error {
	var errs []error
	for _, m := range b.measurements() {
		if key := fmt.Sprint(m.ids); !slices.ContainsFunc(m.ids, b.wanted) || m.once && once[key] {
			continue
		} else if m.once {
			once[key] = true
		}
		if err := m.take(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s on %s: %w", strings.Join(m.ids, " and "), b.engine.name(), err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// wanted reports whether a measurement was requested.
func (b *bench) wanted(id string) bool { return b.only == nil || slices.Contains(b.only, id) }
