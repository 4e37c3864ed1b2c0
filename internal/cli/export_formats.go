package cli

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"assay/internal/money"
	"assay/internal/view"
)

// parquetRow is a row of a Parquet file. Amounts are decimals with six digits after the point.
type parquetRow struct {
	AppID          int32      `parquet:"app_id"`
	MarketHashName string     `parquet:"market_hash_name"`
	Phase          string     `parquet:"phase,dict"`
	Price          int64      `parquet:"price,decimal(6:18)"`
	PriceStatus    string     `parquet:"price_status,dict"`
	PriceUpdatedAt *time.Time `parquet:"price_updated_at,optional,timestamp(microsecond)"`
	PriceCheckedAt *time.Time `parquet:"price_checked_at,optional,timestamp(microsecond)"`
	IntervalLow    *int64     `parquet:"interval_low,optional,decimal(6:18)"`
	IntervalHigh   *int64     `parquet:"interval_high,optional,decimal(6:18)"`
	Average        *int64     `parquet:"average,optional,decimal(6:18)"`
	UsedMarkets    *int64     `parquet:"used_markets,optional"`
}

// rowGroup is the number of rows of a Parquet row group. The writer holds one group in memory.
const rowGroup = 50_000

type parquetWriter struct {
	*parquet.GenericWriter[parquetRow]
}

// newParquetWriter returns a writer of a Parquet file. The file metadata assay.change contains the
// number of the last price change. Columns of fields that were not requested are null.
func newParquetWriter(to io.Writer, change string) priceWriter {
	return parquetWriter{parquet.NewGenericWriter[parquetRow](to, parquet.Compression(&zstd.Codec{}),
		parquet.MaxRowsPerRowGroup(rowGroup), parquet.KeyValueMetadata("assay.change", change))}
}

func (w parquetWriter) write(p *view.PublishedPrice) error {
	row := parquetRow{
		AppID: p.AppID, MarketHashName: p.MarketHashName, Phase: p.Phase, Price: int64(p.CurrentPrice), PriceStatus: p.PriceStatus,
		PriceUpdatedAt: p.PriceUpdatedAt, PriceCheckedAt: p.PriceCheckedAt,
	}
	if f := p.Figures; f != nil {
		row.Average, row.UsedMarkets = (*int64)(f.Average), f.UsedMarkets
		if f.Interval != nil {
			row.IntervalLow, row.IntervalHigh = (*int64)(&f.Interval.Low), (*int64)(&f.Interval.High)
		}
	}
	_, err := w.Write([]parquetRow{row})
	return err
}

// csvColumn is a column of a CSV file.
type csvColumn struct {
	name  string
	field view.Fields // field that selects the column; 0: always
	value func(p *view.PublishedPrice, f *view.Figures) string
}

func csvColumns() []csvColumn {
	bound := func(f *view.Figures, of func(*view.Interval) *money.Micro) string {
		if f.Interval == nil {
			return ""
		}
		return csvAmount(of(f.Interval))
	}
	return []csvColumn{
		{"app_id", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return strconv.Itoa(int(p.AppID)) }},
		{"market_hash_name", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return p.MarketHashName }},
		{"phase", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return p.Phase }},
		{"price", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return p.CurrentPrice.String() }},
		{"price_status", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return p.PriceStatus }},
		{"price_updated_at", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return csvTime(p.PriceUpdatedAt) }},
		{"price_checked_at", 0, func(p *view.PublishedPrice, _ *view.Figures) string { return csvTime(p.PriceCheckedAt) }},
		{"interval_low", view.FieldInterval, func(_ *view.PublishedPrice, f *view.Figures) string {
			return bound(f, func(i *view.Interval) *money.Micro { return &i.Low })
		}},
		{"interval_high", view.FieldInterval, func(_ *view.PublishedPrice, f *view.Figures) string {
			return bound(f, func(i *view.Interval) *money.Micro { return &i.High })
		}},
		{"average", view.FieldAverage, func(_ *view.PublishedPrice, f *view.Figures) string { return csvAmount(f.Average) }},
		{"used_markets", view.FieldUsedMarkets, func(_ *view.PublishedPrice, f *view.Figures) string {
			if f.UsedMarkets == nil {
				return ""
			}
			return strconv.FormatInt(*f.UsedMarkets, 10)
		}},
	}
}

type csvWriter struct {
	*csv.Writer
	columns []csvColumn
}

// newCSVWriter writes the header and returns a writer for the rows.
func newCSVWriter(to io.Writer, fields view.Fields) (priceWriter, error) {
	w := &csvWriter{Writer: csv.NewWriter(to)}
	var header []string
	for _, c := range csvColumns() {
		if c.field&fields == c.field {
			w.columns, header = append(w.columns, c), append(header, c.name)
		}
	}
	return w, w.Write(header)
}

func (w *csvWriter) write(p *view.PublishedPrice) error {
	figures := p.Figures
	if figures == nil {
		figures = &view.Figures{}
	}
	row := make([]string, len(w.columns))
	for i, c := range w.columns {
		row[i] = c.value(p, figures)
	}
	return w.Write(row)
}

// Close implements priceWriter.
func (w *csvWriter) Close() error {
	w.Flush()
	return w.Error()
}

func csvTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func csvAmount(m *money.Micro) string {
	if m == nil {
		return ""
	}
	return m.String()
}

type ndjsonWriter struct{ to io.Writer }

func (w *ndjsonWriter) write(p *view.PublishedPrice) error {
	_, err := w.to.Write(append(p.AppendJSON(nil), '\n'))
	return err
}

// Close implements priceWriter.
func (w *ndjsonWriter) Close() error { return nil }
