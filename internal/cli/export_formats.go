package cli

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"assay/internal/money"
	"assay/internal/parquet"
	"assay/internal/view"
)

// rowGroup is the number of rows of a Parquet row group. The writer holds one group in memory.
const rowGroup = 50_000

// parquetColumn is a column of a Parquet file.
type parquetColumn struct {
	parquet.Column
	value func(p *view.PublishedPrice, f *view.Figures) parquet.Value
}

func parquetColumns() []parquetColumn {
	required := func(name string, kind parquet.Type, value func(p *view.PublishedPrice) parquet.Value) parquetColumn {
		return parquetColumn{parquet.Column{Name: name, Type: kind}, func(p *view.PublishedPrice, _ *view.Figures) parquet.Value { return value(p) }}
	}
	optional := func(name string, kind parquet.Type, value func(p *view.PublishedPrice, f *view.Figures) parquet.Value) parquetColumn {
		return parquetColumn{parquet.Column{Name: name, Type: kind, Optional: true}, value}
	}
	bound := func(f *view.Figures, of func(*view.Interval) money.Micro) parquet.Value {
		if f.Interval == nil {
			return nil
		}
		return parquet.Int(of(f.Interval))
	}
	return []parquetColumn{
		required("app_id", parquet.Int32, func(p *view.PublishedPrice) parquet.Value { return parquet.Int(p.AppID) }),
		required("market_hash_name", parquet.String, func(p *view.PublishedPrice) parquet.Value { return parquet.Text(p.MarketHashName) }),
		required("phase", parquet.String, func(p *view.PublishedPrice) parquet.Value { return parquet.Text(p.Phase) }),
		required("price", parquet.Decimal, func(p *view.PublishedPrice) parquet.Value { return parquet.Int(p.CurrentPrice) }),
		required("price_status", parquet.String, func(p *view.PublishedPrice) parquet.Value { return parquet.Text(p.PriceStatus) }),
		optional("price_updated_at", parquet.Timestamp, func(p *view.PublishedPrice, _ *view.Figures) parquet.Value { return parquetTime(p.PriceUpdatedAt) }),
		optional("price_checked_at", parquet.Timestamp, func(p *view.PublishedPrice, _ *view.Figures) parquet.Value { return parquetTime(p.PriceCheckedAt) }),
		optional("interval_low", parquet.Decimal, func(_ *view.PublishedPrice, f *view.Figures) parquet.Value {
			return bound(f, func(i *view.Interval) money.Micro { return i.Low })
		}),
		optional("interval_high", parquet.Decimal, func(_ *view.PublishedPrice, f *view.Figures) parquet.Value {
			return bound(f, func(i *view.Interval) money.Micro { return i.High })
		}),
		optional("average", parquet.Decimal, func(_ *view.PublishedPrice, f *view.Figures) parquet.Value { return parquetInt(f.Average) }),
		optional("used_markets", parquet.Int64, func(_ *view.PublishedPrice, f *view.Figures) parquet.Value { return parquetInt(f.UsedMarkets) }),
	}
}

type parquetWriter struct {
	*parquet.Writer
	columns []parquetColumn
	row     []parquet.Value
}

// newParquetWriter returns a writer of a Parquet file. The file metadata assay.change contains the
// number of the last price change. Columns of fields that were not requested are null.
func newParquetWriter(to io.Writer, change string) priceWriter {
	w := &parquetWriter{columns: parquetColumns()}
	o := parquet.Options{RowGroup: rowGroup, Metadata: [][2]string{{"assay.change", change}}, CreatedBy: "assay version " + readBuild().Version}
	for _, c := range w.columns {
		o.Columns = append(o.Columns, c.Column)
	}
	w.row = make([]parquet.Value, len(w.columns))
	w.Writer = parquet.NewWriter(to, o)
	return w
}

func (w *parquetWriter) write(p *view.PublishedPrice) error {
	figures := p.Figures
	if figures == nil {
		figures = &view.Figures{}
	}
	for i, c := range w.columns {
		w.row[i] = c.value(p, figures)
	}
	return w.Write(w.row...)
}

func parquetTime(t *time.Time) parquet.Value {
	if t == nil {
		return nil
	}
	return parquet.Int(t.UnixMicro())
}

func parquetInt[T ~int64](n *T) parquet.Value {
	if n == nil {
		return nil
	}
	return parquet.Int(*n)
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
