package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"assay/internal/backtest"
	"assay/internal/money"
	"assay/internal/pricing"
)

// backtestCmd measures a pricing policy with historical quotes.
type backtestCmd struct {
	Dir      string   `arg:"" help:"Folder of .csv files with the columns time, market, name, price and currency."`
	Estimate string   `default:"consensus" placeholder:"METHOD" help:"Method that computes the price: consensus, median or average."`
	Guard    string   `default:"flag" placeholder:"GUARD" help:"Action for an unusually large price change: flag or hold."`
	Currency string   `default:"USD" placeholder:"CODE" help:"Currency of the computed prices."`
	Rate     []string `sep:"none" placeholder:"RATE" help:"Exchange rate of another currency of the files, such as CNY=0.14@2026-10-05. Repeat the flag for each currency."`
	Seed     uint64   `default:"1" help:"Seed of the random numbers. The same seed gives the same figures."`
	Names    int      `default:"0" placeholder:"N" help:"Use about this many names. 0 uses all names."`
	Plots    string   `placeholder:"DIR" help:"Write SVG plots to this folder: price and true value; share within 2, 5 and 10 %; held and released prices."`
}

func (*backtestCmd) examples() []example {
	return []example{
		{"backtest prices", "measure the default policy on the files in prices"},
		{"backtest prices --estimate average --guard hold --plots plots", "measure another policy and plot it"},
		{"backtest prices --json", "the same table for a script; exit code 1 if a figure exceeds its limit"},
	}
}

// errBeyondLimits means that a measured figure exceeds its limit. The result is already
// printed.
var errBeyondLimits = fmt.Errorf("a figure exceeds its limit: %w", errReported)

// backtestReport is the result that --json prints.
type backtestReport struct {
	OK          bool              `json:"ok"`
	Estimate    string            `json:"estimate"`
	Guard       string            `json:"guard"`
	Seed        uint64            `json:"seed"`
	Names       int               `json:"names"`
	Markets     int               `json:"markets"`
	Times       int               `json:"times"`
	Experiments []backtest.Result `json:"experiments"`
}

func (c *backtestCmd) Run(ctx context.Context, s *session) error {
	policy, err := c.policy()
	if err != nil {
		return &usageError{text: err.Error()}
	}
	p := s.newProgress()
	show := func(name string, done, all int) {
		line := fmt.Sprintf("%s (%d of %d)", name, done, all)
		p.show(fmt.Sprintf("%-32s", name), int64(done), int64(all), line, line)
	}
	data, err := backtest.Read(c.Dir, func(done, all int) { show("read "+strconv.Itoa(done)+" files", done, all) })
	if err != nil {
		p.end()
		return err
	}
	results, err := backtest.Run(ctx, data, backtest.Options{
		Policy: policy, Seed: c.Seed, Names: c.Names, Plots: c.Plots != "", Progress: show,
	})
	p.end()
	if err != nil {
		return err
	}
	if err := writePlots(c.Plots, results); err != nil {
		return err
	}
	report := backtestReport{
		OK: true, Estimate: c.Estimate, Guard: c.Guard, Seed: c.Seed,
		Names: len(data.Names), Markets: len(data.Markets), Times: len(data.Times), Experiments: results,
	}
	for i := range results {
		report.OK = report.OK && results[i].OK()
	}
	if err := s.out.result(report, report.text); err != nil {
		return err
	}
	if !report.OK {
		return errBeyondLimits
	}
	return nil
}

// policy returns the pricing policy that the flags describe.
func (c *backtestCmd) policy() (pricing.Policy, error) {
	p := pricing.Policy{Rates: pricing.Rates{}}
	var err error
	if p.Method, err = pricing.ParseMethod(c.Estimate); err != nil {
		return p, fmt.Errorf("--estimate: %w", err)
	}
	if p.Guard, err = pricing.ParseGuard(c.Guard); err != nil {
		return p, fmt.Errorf("--guard: %w", err)
	}
	if p.Currency, err = money.ParseCurrency(c.Currency); err != nil {
		return p, fmt.Errorf("--currency: %w", err)
	}
	for _, text := range c.Rate {
		if err := p.Rates.Add(text); err != nil {
			return p, fmt.Errorf("--rate: %w", err)
		}
	}
	if c.Names < 0 {
		return p, errors.New("--names: give 0 or a positive number")
	}
	return p, nil
}

// text writes the report as a table.
func (r *backtestReport) text(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%s names, %d markets, %d times; %s, %s, seed %d\n\n",
		count(int64(r.Names)), r.Markets, r.Times, r.Estimate, r.Guard, r.Seed)
	rows := [][]string{{"EXPERIMENT", "FIGURE", "MEASURED", "LIMIT", "RESULT"}}
	for _, e := range r.Experiments {
		if e.Skipped != "" {
			rows = append(rows, []string{e.Experiment, "skipped: " + e.Skipped, "-", "-", "-"})
			continue
		}
		for i, m := range e.Measures {
			name := e.Experiment
			if i > 0 {
				name = ""
			}
			rows = append(rows, []string{name, m.Name, unit(m.Value, m.Unit), bound(m), grade(m)})
		}
	}
	table(w, rows)
	if !r.OK {
		_, _ = fmt.Fprintln(w, "\nat least one figure exceeds its limit")
	}
}

func unit(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if unit != "" {
		text += " " + unit
	}
	return text
}

func bound(m backtest.Measure) string {
	switch m.Bound {
	case "<=":
		return "at most " + unit(m.High, m.Unit)
	case ">=":
		return "at least " + unit(m.Low, m.Unit)
	case "within":
		return unit(m.Low, "") + " to " + unit(m.High, m.Unit)
	default:
		return "-"
	}
}

func grade(m backtest.Measure) string {
	switch {
	case m.Bound == "":
		return "-"
	case m.OK():
		return "ok"
	default:
		return "BEYOND"
	}
}

// writePlots writes the plots to a folder and creates it if needed.
func writePlots(dir string, results []backtest.Result) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, r := range results {
		for _, p := range r.Plots {
			if err := os.WriteFile(filepath.Join(dir, p.Name+".svg"), p.SVG, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
