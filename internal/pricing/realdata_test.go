package pricing

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/money"
)

func TestReal_SixMarketsOfMay2020(t *testing.T) {
	items := sixMarkets(t)
	estimator := New(usd())
	var e Estimate
	count := map[Status]int{}
	jokes, dropped := 0, 0
	for name, quotes := range items {
		estimator.Estimate(noon, quotes, Last{}, &e)
		count[e.Status]++
		if e.Estimated == 0 {
			continue
		}
		if e.Robust > 3*e.Median {
			t.Errorf("%s: robust %s is more than 3 times the median %s", name, e.Robust, e.Median)
		}
		for i, v := range e.Verdicts {
			if v.Reason == Outlier {
				dropped++
			}
			if quotes[i].Ask != units(t, "1438.168") || !strings.HasPrefix(name, "Sealed Graffiti") {
				continue
			}
			jokes++
			if v.Reason != Outlier || e.Price > units(t, "0.2") {
				t.Errorf("%s: an ask of $1,438 is %q, the price $%s", name, v.Reason, e.Price)
			}
		}
	}
	if jokes != 5 {
		t.Errorf("%d graffiti asked at $1,438, want 5", jokes)
	}
	t.Logf("%d names: %v; %d quotes dropped", len(items), count, dropped)
}

// The expected figures are worked out by hand from the file's rows.
func TestReal_FiguresOfKnownRows(t *testing.T) {
	items := sixMarkets(t)
	tests := []struct {
		name                           string
		average, median, robust, price string
		used                           int
		status                         Status
	}{
		// 0.1, 0.07, 0.08, 1438.168, 0.08, 0.05: the joke goes; of the five left
		// none is further than 3.5 * 0.1335/0.6745 from 0.08.
		{"Sealed Graffiti | Hop (Blood Red)", "239.758", "0.08", "0.076", "0.076", 5, OK},
		// 0.03, 0.03, 1438.168.
		{"Sealed Graffiti | Fart (Bazooka Pink)", "479.409333", "0.03", "0.03", "0.03", 2, OK},
		// 6.7, 6.99, 6.85, 5.389, 6.17, 4.76.
		{"AWP | Fever Dream (Minimal Wear)", "6.143167", "6.435", "6.143167", "6.143167", 6, OK},
		// 202.54, 257.56, 280.21: nothing to drop.
		{"StatTrak™ MAC-10 | Stalker (Factory New)", "246.77", "257.56", "246.77", "246.77", 3, OK},
		// 102.64, 101.97, 107.56, 143816.727, 112.75, 79.46: 79.46 is 0.257 from
		// 102.64 on the log scale; the limit is 3.5 * 0.0468/0.6745 = 0.243.
		{"StatTrak™ M4A1-S | Player Two (Field-Tested)", "24053.517833", "105.1", "106.23", "106.23", 4, OK},
	}
	for _, tt := range tests {
		e := estimate(usd(), items[tt.name], Last{})
		for _, f := range []struct {
			what string
			got  money.Micro
			want string
		}{{"average", e.Average, tt.average}, {"median", e.Median, tt.median}, {"robust", e.Robust, tt.robust}, {"price", e.Price, tt.price}} {
			if f.got != units(t, f.want) {
				t.Errorf("%s: %s %s, want %s", tt.name, f.what, f.got, f.want)
			}
		}
		if e.UsedMarkets != tt.used || e.Status != tt.status {
			t.Errorf("%s: %d markets, %s; want %d, %s", tt.name, e.UsedMarkets, e.Status, tt.used, tt.status)
		}
	}
}

// sixMarkets reads the quotes of 1,000 real names, or skips the test.
func sixMarkets(t *testing.T) map[string][]Quote {
	t.Helper()
	f, err := os.Open(filepath.Join(projectRoot(t), "..", "shared", "data", "csgo_6market_2020-05_usd.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("real prices (../shared/data/csgo_6market_2020-05_usd.csv.gz) are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	items := make(map[string][]Quote, len(rows))
	for _, row := range rows[1:] {
		var quotes []Quote
		for i, text := range row[1:] {
			if text != "" {
				quotes = append(quotes, Quote{
					Source: "file", Market: rows[0][i+1], Currency: "USD", Ask: units(t, text), Sales: -1, FetchedAt: noon,
				})
			}
		}
		items[row[0]] = quotes
	}
	return items
}

// projectRoot returns the directory of go.mod.
func projectRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
