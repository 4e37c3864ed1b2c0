package pricing

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"assay/internal/money"
)

// The expected figures were computed by hand from the rows of the file. The Set is empty,
// so all markets have the same level.
func TestRealData_FiguresOfKnownRows(t *testing.T) {
	items := sixMarkets(t)
	tests := []struct {
		name                       string
		average, median, consensus string
		used                       int
		status                     Status
	}{
		// Quotes: 0.1, 0.07, 0.08, 1438.168, 0.08, 0.05. All but 1438.168 are within 2x.
		// Their distances are 0.223, 0.134, 0 and 0.470: h = 1.86 * (0.827 + 0.3)/7 * sqrt(6/5) = 0.328.
		{"Sealed Graffiti | Hop (Blood Red)", "239.758", "0.08", "0.08", 5, Thin},
		// Quotes: 0.03, 0.03, 1438.168.
		{"Sealed Graffiti | Fart (Bazooka Pink)", "479.409333", "0.03", "0.03", 2, OK},
		// Quotes: 6.7, 6.99, 6.85, 5.389, 6.17, 4.76. The two middle ones are 6.17 and 6.7.
		{"AWP | Fever Dream (Minimal Wear)", "6.143167", "6.435", "6.435", 6, OK},
		// Quotes: 202.54, 257.56, 280.21.
		// h = 1.86 * (0.324 + 0.3)/5 * sqrt(4/3) = 0.268 exceeds the limit ln 1.3 = 0.262.
		{"StatTrak™ MAC-10 | Stalker (Factory New)", "246.77", "257.56", "257.56", 3, Thin},
		// Quotes: 102.64, 101.97, 107.56, 143816.727, 112.75, 79.46.
		{"StatTrak™ M4A1-S | Player Two (Field-Tested)", "24053.517833", "105.1", "102.64", 5, OK},
	}
	for _, tt := range tests {
		e := estimate(usd(), items[tt.name])
		for _, f := range []struct {
			what string
			got  money.Micro
			want string
		}{{"average", e.Average, tt.average}, {"median", e.Median, tt.median}, {"consensus", e.Consensus, tt.consensus}, {"price", e.Price, tt.consensus}} {
			if f.got != units(t, f.want) {
				t.Errorf("%s: got the %s %s, want %s", tt.name, f.what, f.got, f.want)
			}
		}
		if e.UsedMarkets != tt.used || e.Status != tt.status {
			t.Errorf("%s: got %d used markets and the status %s, want %d and %s", tt.name, e.UsedMarkets, e.Status, tt.used, tt.status)
		}
	}
}

// sixMarkets reads the quotes of 1,000 real names. It skips the test if the file is missing.
func sixMarkets(t *testing.T) map[string][]Quote {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "csgo_6market_2020-05_usd.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("file ../shared/data/csgo_6market_2020-05_usd.csv.gz is missing")
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
					Provider: "file", Market: rows[0][i+1], Currency: "USD", Ask: units(t, text), Sales: -1, FetchedAt: noon,
				})
			}
		}
		items[row[0]] = quotes
	}
	return items
}
