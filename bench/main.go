// Command bench measures Assay against floors: the same net writes done by
// hand-written SQL and nothing else, in the same minutes on the same machine, so
// that a busy or slow machine changes both alike. docs/explanation/performance.md
// says what is measured and why.
//
// The program under test runs as it is built, in a process of its own; so does
// the market simulator that it asks. Nothing is written outside a directory for
// temporary files, which is removed at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
		os.Exit(1) //nolint:forbidigo // a program of its own
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
	json    bool
	only    []string
	engines []string
	engine  engine // the one that is measured on
	results results
	log     io.Writer // what is going on

	shared *filled // made when first needed
}

func newBench(args []string) (*bench, error) {
	b := &bench{log: os.Stderr}
	var only, engines string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&b.binary, "assay", "bin/assay", "the program to measure, as make build makes it")
	f.IntVar(&b.size.names, "names", 30_000, "names of work R")
	f.IntVar(&b.size.markets, "markets", 10, "markets of work R")
	f.IntVar(&b.size.rows, "rows", 1_000_000, "inventory rows of work R")
	f.IntVar(&b.runs, "runs", 0, "runs of which the median is taken (default 3, with -long 5)")
	f.BoolVar(&b.long, "long", false, "more runs, and the largest size of T5, which takes many minutes")
	f.StringVar(&only, "only", "", "comma list of what to measure: T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11 (default all)")
	f.StringVar(&engines, "engines", strings.Join(engineNames, ","), "comma list of databases to measure on")
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
		return nil, fmt.Errorf("%w: make build makes it", err)
	}
	var err error
	b.temp, err = os.MkdirTemp("", "assay-bench-")
	return b, err
}

// engineNames are the databases to measure on, in this order.
var engineNames = []string{"sqlite", "postgres"}

// measure takes all measurements that are asked for, on one database after the
// other. One that fails leaves the others alone.
func (b *bench) measure(ctx context.Context) error {
	var errs []error
	once := map[string]bool{}
	for _, name := range b.engines {
		if ctx.Err() != nil {
			break
		}
		var err error
		if b.engine, err = b.newEngine(name); err != nil {
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

// newEngine starts what a database needs; nil means that it is not installed,
// which has been said.
func (b *bench) newEngine(name string) (engine, error) {
	switch name {
	case "sqlite":
		return sqlite{}, nil
	case "postgres":
		e, err := startPostgres()
		if errors.Is(err, pgtest.ErrNotInstalled) {
			b.skip("T1", "everything on PostgreSQL", "not installed: postgresql")
			return nil, nil //nolint:nilnil // as said above
		}
		return e, err
	default:
		return nil, fmt.Errorf("no database %q: want %s", name, strings.Join(engineNames, " or "))
	}
}

// measurement takes some figures. Those that do not depend on the database are
// taken once, on the first one.
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
	}
	if _, ok := b.engine.(postgres); ok { // which processes can share
		all = append(all, measurement{[]string{"T10"}, true, b.measureInstances})
	}
	return all
}

// measureEngine takes the measurements on the present engine, except those of
// once.
func (b *bench) measureEngine(ctx context.Context, once map[string]bool) error {
	var errs []error
	for _, m := range b.measurements() {
		wanted := b.only == nil || slices.ContainsFunc(m.ids, func(id string) bool { return slices.Contains(b.only, id) })
		if key := fmt.Sprint(m.ids); !wanted || m.once && once[key] {
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

// skip notes what cannot be measured, and why.
func (b *bench) skip(id, what, why string) {
	b.say("%s: %s skipped: %s (scripts/setup bench installs it)", id, what, why)
	b.results = append(b.results, result{id: id, what: what + ": skipped, " + why, skipped: true})
}

// say tells what is going on.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
