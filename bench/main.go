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
	err = errors.Join(b.measure(ctx), b.closeShared())
	return errors.Join(err, b.results.print(os.Stdout))
}

// bench is one run of this program.
type bench struct {
	binary  string
	temp    string
	size    size
	runs    int
	long    bool
	only    []string
	engine  engine
	results results
	log     io.Writer // what is going on

	shared *filled // made when first needed
}

func newBench(args []string) (*bench, error) {
	b := &bench{engine: sqlite{}, log: os.Stderr}
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&b.binary, "assay", "bin/assay", "the program to measure, as make build makes it")
	f.IntVar(&b.size.names, "names", 30_000, "names of work R")
	f.IntVar(&b.size.markets, "markets", 10, "markets of work R")
	f.IntVar(&b.size.rows, "rows", 1_000_000, "inventory rows of work R")
	f.IntVar(&b.runs, "runs", 0, "runs of which the median is taken (default 3, with -long 5)")
	f.BoolVar(&b.long, "long", false, "more runs, and the largest size of T5, which takes many minutes")
	f.StringVar(&only, "only", "", "comma list of what to measure: T2, T3, T4, T5, T6, T7, T8, T9, T11 (default all)")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if b.runs == 0 {
		b.runs = 3
		if b.long {
			b.runs = 5
		}
	}
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

// measure takes all measurements that are asked for. One that fails leaves the
// others alone.
func (b *bench) measure(ctx context.Context) error {
	var errs []error
	for _, m := range []struct {
		ids  []string
		take func(context.Context) error
	}{
		{[]string{"T2", "T3"}, b.measureRefresh},
		{[]string{"T4"}, b.measureUnchanged},
		{[]string{"T8"}, b.measureLookup},
		{[]string{"T9"}, b.measureStatus},
		{[]string{"T11"}, b.measureStart},
		{[]string{"T7"}, b.measureSync},
		{[]string{"T3"}, b.measureWide},
		{[]string{"T5"}, b.measureGrowth},
		{[]string{"T6"}, b.measureRequests},
	} {
		if b.only != nil && !slices.ContainsFunc(m.ids, func(id string) bool { return slices.Contains(b.only, id) }) {
			continue
		}
		if err := m.take(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.Join(m.ids, " and "), err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// say tells what is going on.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
