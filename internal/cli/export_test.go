package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

const (
	exportedPrices = `{"appId":730,"marketHashName":"=1+1, \"odd\"\n★","phase":"Ruby","currentPrice":12.345678,"currentPriceDecimal":"12.345678","priceStatus":"ok","priceUpdatedAt":"2026-01-02T03:04:05.000006Z","priceCheckedAt":"2026-01-02T03:04:06Z","interval":{"low":12,"high":13.5},"average":12.5,"usedMarkets":4}
{"appId":440,"marketHashName":"Key","phase":"","currentPrice":9007199254.740993,"currentPriceDecimal":"9007199254.740993","priceStatus":"thin","priceUpdatedAt":null,"priceCheckedAt":null}
`
	exportedCSV = `app_id,market_hash_name,phase,price,price_status,price_updated_at,price_checked_at,interval_low,interval_high,average,used_markets
730,"=1+1, ""odd""
★",Ruby,12.345678,ok,2026-01-02T03:04:05.000006Z,2026-01-02T03:04:06Z,12,13.5,12.5,4
440,Key,,9007199254.740993,thin,,,,,,
`
)

// parquetRow is a row of an exported Parquet file. Amounts are decimals with six digits after the point.
type parquetRow struct {
	AppID          int32      `parquet:"app_id"`
	MarketHashName string     `parquet:"market_hash_name"`
	Phase          string     `parquet:"phase"`
	Price          int64      `parquet:"price,decimal(6:18)"`
	PriceStatus    string     `parquet:"price_status"`
	PriceUpdatedAt *time.Time `parquet:"price_updated_at,optional,timestamp(microsecond)"`
	PriceCheckedAt *time.Time `parquet:"price_checked_at,optional,timestamp(microsecond)"`
	IntervalLow    *int64     `parquet:"interval_low,optional,decimal(6:18)"`
	IntervalHigh   *int64     `parquet:"interval_high,optional,decimal(6:18)"`
	Average        *int64     `parquet:"average,optional,decimal(6:18)"`
	UsedMarkets    *int64     `parquet:"used_markets,optional"`
}

// runExport runs the command against a server that sends the given body.
func runExport(t *testing.T, body string, cut bool, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/prices/snapshot.ndjson" || r.Header.Get("X-Market-Sync-Secret") != fakeMarketSecret {
			refuse(w, 401, `{"title":"Unauthorized","status":401,"detail":"wrong secret","code":"unauthorized"}`)
			return
		}
		w.Header().Set("Assay-Change", "4711")
		_, _ = io.WriteString(w, body)
		if cut {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	p := Program{
		Args:    append([]string{"export"}, args...),
		Environ: []string{"LISTEN_ADDR=" + strings.TrimPrefix(server.URL, "http://"), "MARKET_PRICE_SYNC_SECRET=" + fakeMarketSecret},
		Stdin:   strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
	}
	code = p.Run(t.Context())
	return code, out.String(), errs.String()
}

func TestExport_WritesExactCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.csv")
	code, out, errs := runExport(t, exportedPrices, false, path, "--fields", "interval,average,usedMarkets")
	if code != exitOK || !strings.Contains(out, "has 2 prices, up to change 4711") {
		t.Fatalf("got exit code %d: %s%s; want 0 and the number of prices", code, out, errs)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(exportedCSV, string(got)); d != "" {
		t.Error(d)
	}
	if _, err := csv.NewReader(bytes.NewReader(got)).ReadAll(); err != nil {
		t.Errorf("read the file: got error %v, want valid CSV", err)
	}
	code, out, errs = runExport(t, exportedPrices, false, "-", "--format", "csv")
	if want := "730,\"=1+1, \"\"odd\"\"\n★\",Ruby,12.345678,ok,2026-01-02T03:04:05.000006Z,2026-01-02T03:04:06Z\n"; code != exitOK || !strings.Contains(out, want) {
		t.Errorf("got exit code %d: %s%s; want the row %s without more columns", code, out, errs, want)
	}
}

func TestExport_WritesParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.parquet")
	if code, out, errs := runExport(t, exportedPrices, false, path); code != exitOK {
		t.Fatalf("got exit code %d: %s%s; want 0", code, out, errs)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if change, ok := file.Lookup("assay.change"); !ok || change != "4711" {
		t.Errorf("got the metadata %q, want the change 4711", change)
	}
	if schema := fmt.Sprint(file.Schema()); !strings.Contains(schema, "DECIMAL(18,6)") || !strings.Contains(schema, "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)") {
		t.Errorf("got the schema %s, want decimals and timestamps in microseconds", schema)
	}
	reader := parquet.NewGenericReader[parquetRow](f)
	defer reader.Close()
	rows := make([]parquetRow, 3)
	n, err := reader.Read(rows)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	updated, checked := time.Date(2026, 1, 2, 3, 4, 5, 6_000, time.UTC), time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	low, high, average, used := int64(12_000_000), int64(13_500_000), int64(12_500_000), int64(4)
	want := []parquetRow{
		{
			AppID: 730, MarketHashName: "=1+1, \"odd\"\n★", Phase: "Ruby", Price: 12_345_678, PriceStatus: "ok", PriceUpdatedAt: &updated, PriceCheckedAt: &checked,
			IntervalLow: &low, IntervalHigh: &high, Average: &average, UsedMarkets: &used,
		},
		{AppID: 440, MarketHashName: "Key", Price: 9_007_199_254_740_993, PriceStatus: "thin"},
	}
	if d := cmp.Diff(want, rows[:n]); d != "" {
		t.Error(d)
	}
}

// Programs that read the files depend on the names, the order and the types of the columns.
func TestExport_KeepsParquetSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.parquet")
	if code, out, errs := runExport(t, "", false, path); code != exitOK || !strings.Contains(out, "has 0 prices, up to change 4711") {
		t.Fatalf("got exit code %d: %s%s; want 0 and no prices", code, out, errs)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if file.NumRows() != 0 || !strings.HasPrefix(file.Metadata().CreatedBy, "assay version ") {
		t.Errorf("got %d rows, created by %q; want no rows, created by assay", file.NumRows(), file.Metadata().CreatedBy)
	}
	const want = `message schema {
	required int32 app_id (INT(32,true));
	required binary market_hash_name (STRING);
	required binary phase (STRING);
	required int64 price (DECIMAL(18,6));
	required binary price_status (STRING);
	optional int64 price_updated_at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 price_checked_at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 interval_low (DECIMAL(18,6));
	optional int64 interval_high (DECIMAL(18,6));
	optional int64 average (DECIMAL(18,6));
	optional int64 used_markets (INT(64,true));
}`
	if d := cmp.Diff(want, fmt.Sprint(file.Schema())); d != "" {
		t.Error(d)
	}
}

// An interrupted export must leave no file.
func TestExport_LeavesNoPartialFile(t *testing.T) {
	dir := t.TempDir()
	for name, cut := range map[string]string{"in a line": exportedPrices[:400], "after a line": exportedPrices} {
		for _, file := range []string{"prices.csv", "prices.parquet", "prices.ndjson"} {
			code, _, errs := runExport(t, cut+strings.Repeat(" ", 1<<16), true, filepath.Join(dir, file))
			if code != exitUnreachable || !strings.Contains(errs, "before it was complete") {
				t.Errorf("%s, cut %s: got exit code %d: %s; want %d and the reason", file, name, code, errs, exitUnreachable)
			}
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("got the files %v, %v, want none", left, err)
	}
}

func TestExport_ExplainsAMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "missing", "prices.csv")
	code, _, errs := runExport(t, exportedPrices, false, path)
	if code != exitUsage || !strings.Contains(errs, path+" cannot be written") || !strings.Contains(errs, "create it") || strings.Contains(errs, ".tmp") {
		t.Errorf("got exit code %d: %s; want %d, the file and the fix, but no temporary file", code, errs, exitUsage)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs = runExport(t, exportedPrices, false, filepath.Join(dir, "file", "prices.csv"))
	if code != exitUsage || !strings.Contains(errs, "use another path") || strings.Contains(errs, ".tmp") {
		t.Errorf("below a file: got exit code %d: %s; want %d and the fix", code, errs, exitUsage)
	}
}

func TestExport_RefusesUnknownFormats(t *testing.T) {
	for _, args := range [][]string{{"prices.xlsx"}, {"prices"}, {"-"}, {"prices.csv", "--fields", "volume"}, {"prices.csv", "--format", "xlsx"}} {
		if code, _, errs := runExport(t, exportedPrices, false, args...); code != exitUsage {
			t.Errorf("%q: got exit code %d: %s; want %d", args, code, errs, exitUsage)
		}
	}
}
