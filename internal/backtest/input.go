package backtest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/internal/diskfile"
	"assay/internal/money"
)

// Data is a history of quotes.
type Data struct {
	Names   []string
	Markets []MarketInfo
	Times   []time.Time
	// Quotes holds the quotes by time, market and name. The quotes of a market are nil at
	// times without a response.
	Quotes [][]Quotes
}

// columns returns the required columns of a file. Other columns are ignored.
func columns() []string { return []string{"time", "market", "name", "price", "currency"} }

const (
	maxRows    = 50_000_000
	maxMarkets = 100
)

// row is one row of a file.
type row struct {
	at     int64 // microseconds
	market int32 // number in reader.markets
	name   int32 // number in reader.names
	price  money.Micro
}

// reader reads files and collects their rows.
type reader struct {
	names    index
	markets  index
	currency []money.Currency // currency by market
	rows     []row
}

func newReader() *reader {
	return &reader{names: index{at: map[string]int32{}}, markets: index{at: map[string]int32{}}}
}

// index assigns consecutive numbers to texts.
type index struct {
	at   map[string]int32
	list []string
}

// number returns the number of a text and whether the text is new. It stores a copy, so
// that the line which contains the text can be freed.
func (n *index) number(text string) (at int32, isNew bool) {
	at, known := n.at[text]
	if !known {
		at, text = int32(len(n.list)), strings.Clone(text)
		n.at[text] = at
		n.list = append(n.list, text)
	}
	return at, !known
}

// Read reads all .csv files of a directory. Each file has a header with the columns time,
// market, name, price and currency. A time is in RFC 3339 format or a date. The rows with
// the same market and time form one response. Read calls progress after each file.
func Read(dir string, progress func(done, all int)) (*Data, error) {
	all, err := fs.Glob(os.DirFS(dir), "*.csv")
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no .csv file in %s: use a directory with files that have the columns %s", dir, strings.Join(columns(), ", ")))
	}
	slices.Sort(all)
	r := newReader()
	for i, file := range all {
		if err := r.file(filepath.Join(dir, file)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		progress(i+1, len(all))
	}
	if len(r.rows) == 0 {
		return nil, fmt.Errorf("the files in %s have no quotes: use files with at least one row", dir)
	}
	return r.data(), nil
}

func (r *reader) file(name string) error {
	f, err := diskfile.OpenRegular(name)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return fmt.Errorf("%w: remove it from the directory", diskfile.ErrNotRegular)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	c := csv.NewReader(f)
	c.ReuseRecord = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the file is empty: the header must have the columns %s", strings.Join(columns(), ", "))
	}
	if err != nil {
		return fmt.Errorf("read header: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets write a byte order mark
	var at [5]int
	for i, want := range columns() {
		if at[i] = slices.Index(header, want); at[i] < 0 {
			return fmt.Errorf("no column %q: the header must have the columns %s", want, strings.Join(columns(), ", "))
		}
	}
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.add(rec[at[0]], rec[at[1]], rec[at[2]], rec[at[3]], rec[at[4]]); err != nil {
			line, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (r *reader) add(at, market, name, price, currency string) error {
	if len(r.rows) >= maxRows {
		return fmt.Errorf("more than %d rows: split the history", maxRows)
	}
	t, err := parseTime(at)
	if err != nil {
		return err
	}
	p, err := money.Parse([]byte(price), 1)
	if err != nil || p <= 0 {
		return fmt.Errorf("invalid price %.40q: use a decimal number above 0", price)
	}
	m, isNew := r.markets.number(market)
	if isNew {
		c, err := money.ParseCurrency(currency)
		if err != nil {
			return err
		}
		if m >= maxMarkets {
			return fmt.Errorf("more than %d markets: remove some markets", maxMarkets)
		}
		r.currency = append(r.currency, c)
	}
	if string(r.currency[m]) != currency {
		return fmt.Errorf("market %.40q has quotes in %s and %.10q: use one currency per market", market, r.currency[m], currency)
	}
	n, _ := r.names.number(name)
	r.rows = append(r.rows, row{t.UnixMicro(), m, n, p})
	return nil
}

func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("invalid time %.40q: use the format 2026-10-05T12:00:00Z or 2026-10-05", text)
}

// data returns the rows as Data. Names, markets and times are sorted, so the result does
// not depend on the order of the rows.
func (r *reader) data() *Data {
	names, nameAt := sorted(r.names.list)
	markets, marketAt := sorted(r.markets.list)
	d := &Data{Names: names}
	for _, m := range markets {
		d.Markets = append(d.Markets, MarketInfo{m, r.currency[r.markets.at[m]]})
	}
	times := map[int64]int{}
	for _, row := range r.rows {
		times[row.at] = 0
	}
	for at := range times {
		d.Times = append(d.Times, time.UnixMicro(at).UTC())
	}
	slices.SortFunc(d.Times, time.Time.Compare)
	for i, t := range d.Times {
		times[t.UnixMicro()] = i
	}
	d.Quotes = make([][]Quotes, len(d.Times))
	for _, row := range r.rows {
		t := times[row.at]
		if d.Quotes[t] == nil {
			d.Quotes[t] = make([]Quotes, len(markets))
		}
		m := marketAt[row.market]
		if d.Quotes[t][m] == nil {
			d.Quotes[t][m] = make(Quotes, len(names))
		}
		switch q := &d.Quotes[t][m][nameAt[row.name]]; *q {
		case 0, row.price:
			*q = row.price
		default:
			*q = conflict
		}
	}
	d.reject()
	return d
}

// conflict marks a quote with several rows that have different prices.
const conflict money.Micro = -1

// reject removes the quotes with a conflict, as a refresh does.
func (d *Data) reject() {
	for _, markets := range d.Quotes {
		for _, quotes := range markets {
			for i, q := range quotes {
				if q == conflict {
					quotes[i] = 0
				}
			}
		}
	}
}

// sample returns the history of about n names. It includes either all wears of a skin or
// none.
func (d *Data) sample(n int) *Data {
	if n <= 0 || n >= len(d.Names) {
		return d
	}
	out := &Data{Markets: d.Markets, Times: d.Times}
	var at []int
	for i, name := range d.Names {
		if skinHash(name)%uint64(len(d.Names)) < uint64(n) {
			at, out.Names = append(at, i), append(out.Names, name)
		}
	}
	for _, all := range d.Quotes {
		var some []Quotes
		for _, q := range all {
			if q == nil {
				some = append(some, nil)
				continue
			}
			part := make(Quotes, len(at))
			for k, i := range at {
				part[k] = q[i]
			}
			some = append(some, part)
		}
		out.Quotes = append(out.Quotes, some)
	}
	return out
}

// skinHash returns a hash of a name without its wear.
func skinHash(name string) uint64 {
	if i := strings.LastIndex(name, " ("); i > 0 {
		name = name[:i]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// sorted returns the sorted texts, and the new index of each text.
func sorted(texts []string) (out []string, newIndex []int32) {
	order := make([]int32, len(texts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
	newIndex = make([]int32, len(texts))
	for i, o := range order {
		out = append(out, texts[o])
		newIndex[o] = int32(i)
	}
	return out, newIndex
}
