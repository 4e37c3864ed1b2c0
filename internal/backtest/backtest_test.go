package backtest

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
)

func TestReal_SixMarketsAreWithinAllLimits(t *testing.T) {
	d := realData(t, "csgo_6market_2020-05_usd.csv.gz", func(column string) (string, string) { return "2020-05-15", column }, 1)
	measure(t, d, Options{Seed: 1, Quick: !randtest.Long()}, 7)
}

func TestReal_WeeklySeriesIsWithinAllLimits(t *testing.T) {
	d := realData(t, "cs2_steam_weekly_2026_usd_cents.csv.gz", func(column string) (string, string) { return column, "steam" }, 100)
	names := 4000
	if randtest.Long() {
		names = 0
	}
	measure(t, d, Options{Seed: 1, Names: names}, 3)
}

// measure runs all experiments. It fails the test if a measure exceeds its limits, or if
// the number of experiments that were not skipped is wrong.
func measure(t *testing.T, d *Data, o Options, experiments int) {
	t.Helper()
	o.Policy = pricing.Policy{Method: pricing.Consensus, Currency: "USD"}
	results, err := Run(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Skipped == "" {
			experiments--
		}
		for _, m := range r.Measures {
			t.Logf("%s: %s: %.4g %s", r.Experiment, m.Name, m.Value, m.Unit)
			if !m.OK() {
				t.Errorf("%s: %s: got %.4g, want %s %g to %g", r.Experiment, m.Name, m.Value, m.Bound, m.Low, m.High)
			}
		}
	}
	if experiments != 0 {
		t.Errorf("got results without %d of the experiments, want all", experiments)
	}
}

// realData reads a table with a row per name. The function columnOf returns the time and
// the market of a column. Prices are divided by scale. The test is skipped if the file is
// missing.
func realData(t *testing.T, file string, columnOf func(column string) (string, string), scale money.Micro) *Data {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", file))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("real prices (../shared/data/%s) are not available", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decompressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(decompressed).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	r := newReader()
	for _, row := range rows[1:] {
		for i, text := range row[1:] {
			if text == "" {
				continue
			}
			at, market := columnOf(rows[0][i+1])
			if err := r.add(at, market, row[0], text, "USD"); err != nil {
				t.Fatal(err)
			}
			r.rows[len(r.rows)-1].price /= scale
		}
	}
	return r.data()
}

func TestRead_AcceptsColumnsInAnyOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.csv", "name,price,currency,market,time,comment\nB,2.5,EUR,m,2026-01-02,x\nA,0.9,EUR,m,2026-01-02,\n")
	write(t, dir, "b.csv", "time,market,name,price,currency\n2026-01-01T12:00:00Z,k,A,3,USD\n")
	d, err := Read(dir, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Names) != 2 || d.Names[0] != "A" || len(d.Times) != 2 || !d.Times[0].Equal(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)) {
		t.Fatalf("got prices %+v, want names A and B at two times", d)
	}
	if d.Markets[0] != (MarketInfo{"k", "USD"}) || d.Markets[1] != (MarketInfo{"m", "EUR"}) {
		t.Fatalf("got markets %v, want k in USD and m in EUR", d.Markets)
	}
	if q := d.Quotes[1][1]; d.Quotes[1][0] != nil || q[0] != 900_000 || q[1] != 2_500_000 {
		t.Fatalf("got quotes %v, want 0.9 and 2.5 of market m", d.Quotes)
	}
}

// If a name has different prices in one response, all of its rows are rejected, as in a
// refresh.
func TestRead_RejectsConflictingRows(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.csv", "time,market,name,price,currency\n"+
		"2026-01-02,m,A,1,EUR\n2026-01-02,m,A,0.9,EUR\n2026-01-02,m,A,0.9,EUR\n2026-01-02,m,B,2,EUR\n2026-01-02,m,B,2.0,EUR\n")
	d, err := Read(dir, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	if q := d.Quotes[0][0]; q[0] != 0 || q[1] != 2_000_000 {
		t.Errorf("got quotes %v, want only B at 2", q)
	}
}

// Spreadsheets write a byte order mark. The directory's name has characters of a glob
// pattern.
func TestRead_AcceptsFilesOfSpreadsheets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "prices [2026]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.csv", "\ufefftime,market,name,price,currency\r\n2026-01-02,m,A,1,EUR\r\n")
	if d, err := Read(dir, func(int, int) {}); err != nil || len(d.Names) != 1 {
		t.Errorf("got prices %+v, error %v, want one name", d, err)
	}
}

func TestRead_ReportsFaults(t *testing.T) {
	const header = "time,market,name,price,currency\n"
	for text, want := range map[string]string{
		"time,market,name,price\n":                              `no column "currency"`,
		header + "yesterday,m,A,1,USD\n":                        "line 2: invalid time",
		header + "2026-01-01,m,A,free,USD\n":                    "line 2: invalid price",
		header + "2026-01-01,m,A,-1,USD\n":                      "line 2: invalid price",
		header + "2026-01-01,m,A,1,dollar\n":                    "line 2: currency",
		header + "2026-01-01,m,A,1,USD\n2026-01-01,m,B,1,EUR\n": "line 3: market",
		header: "no quote",
		"":     "is empty",
	} {
		dir := t.TempDir()
		write(t, dir, "a.csv", text)
		if _, err := Read(dir, func(int, int) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, func(int, int) {}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory with the suffix .csv: got error %v, want one about a regular file", err)
	}
	if _, err := Read(t.TempDir(), func(int, int) {}); err == nil || !strings.Contains(err.Error(), "no .csv file") {
		t.Errorf("empty directory: got error %v, want no .csv file", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRun_SameSeedGivesSameResults(t *testing.T) {
	d := realData(t, "csgo_6market_2020-05_usd.csv.gz", func(column string) (string, string) { return "2020-05-15", column }, 1)
	o := Options{Seed: 7, Names: 200, Quick: true, Plots: true, Policy: pricing.Policy{Method: pricing.Average, Guard: pricing.Hold, Currency: "USD"}}
	a, err := Run(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for i := range a {
		if !a[i].OK() {
			bad++
		}
		for k := range a[i].Measures {
			if a[i].Measures[k] != b[i].Measures[k] {
				t.Errorf("%s: got %+v and %+v, want the same", a[i].Experiment, a[i].Measures[k], b[i].Measures[k])
			}
		}
	}
	if bad == 0 {
		t.Error("method average: got all results within their limits, want some beyond")
	}
	if len(a[0].Plots) == 0 || !strings.HasPrefix(string(a[0].Plots[0].SVG), "<svg") {
		t.Error("got no SVG plot of the first experiment, want one")
	}
}
