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

// Data is a history of quotes: what each market quoted at each time.
type Data struct {
	Names   []string
	Markets []MarketInfo
	Times   []time.Time
	// Quotes holds, by time and market, the quotes by name; nil: the market did not
	// respond at that time.
	Quotes [][]Quotes
}

// columns are those of every file; others are ignored.
func columns() []string { return []string{"time", "market", "name", "price", "currency"} }

const (
	maxRows    = 50_000_000
	maxMarkets = 100
)

// row is one quote.
type row struct {
	at     int64 // microseconds
	market int32
	name   int32
	price  money.Micro
}

// reading collects the rows of all files.
type reading struct {
	names    numbered
	markets  numbered
	currency []money.Currency // of each market
	rows     []row
}

func newReading() *reading {
	return &reading{names: numbered{at: map[string]int32{}}, markets: numbered{at: map[string]int32{}}}
}

// numbered are texts in the order in which they appeared.
type numbered struct {
	at   map[string]int32
	list []string
}

// number returns the number of a text, and whether it is new. It keeps no part of its line.
func (n *numbered) number(text string) (at int32, isNew bool) {
	at, known := n.at[text]
	if !known {
		at, text = int32(len(n.list)), strings.Clone(text)
		n.at[text] = at
		n.list = append(n.list, text)
	}
	return at, !known
}

// Read reads every .csv file of a folder. Each has a header with the columns time
// (RFC 3339 or a date), market, name, price and currency; the rows of one market
// and time are one response.
func Read(dir string, progress func(done, all int)) (*Data, error) {
	all, err := fs.Glob(os.DirFS(dir), "*.csv")
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no .csv file in %s: give a folder of files with the columns %s", dir, strings.Join(columns(), ", ")))
	}
	slices.Sort(all)
	r := newReading()
	for i, file := range all {
		if err := r.file(filepath.Join(dir, file)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		progress(i+1, len(all))
	}
	if len(r.rows) == 0 {
		return nil, fmt.Errorf("the files in %s have no quote: give a folder of files with rows", dir)
	}
	return r.data(), nil
}

func (r *reading) file(name string) error {
	f, err := diskfile.OpenRegular(name)
	if errors.Is(err, diskfile.ErrNotRegular) {
		return fmt.Errorf("%w: remove it from the folder", diskfile.ErrNotRegular)
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	c := csv.NewReader(f)
	c.ReuseRecord = true
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the file is empty: the header must name %s", strings.Join(columns(), ", "))
	}
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets write a byte order mark
	var at [5]int
	for i, want := range columns() {
		if at[i] = slices.Index(header, want); at[i] < 0 {
			return fmt.Errorf("no column %q: the header must name %s", want, strings.Join(columns(), ", "))
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

func (r *reading) add(at, market, name, price, currency string) error {
	if len(r.rows) >= maxRows {
		return fmt.Errorf("more than %d rows: split the history", maxRows)
	}
	t, err := parseTime(at)
	if err != nil {
		return err
	}
	p, err := money.Parse([]byte(price), 1)
	if err != nil || p <= 0 {
		return fmt.Errorf("price %.40q: want a decimal number above 0", price)
	}
	m, isNew := r.markets.number(market)
	if isNew {
		c, err := money.ParseCurrency(currency)
		if err != nil {
			return err
		}
		if m >= maxMarkets {
			return fmt.Errorf("more than %d markets: leave some out", maxMarkets)
		}
		r.currency = append(r.currency, c)
	}
	if string(r.currency[m]) != currency {
		return fmt.Errorf("market %.40q quotes in %s and %.10q: one market has one currency", market, r.currency[m], currency)
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
	return time.Time{}, fmt.Errorf("time %.40q: write 2026-10-05T12:00:00Z or 2026-10-05", text)
}

// data sorts names, markets and times, so that the order of rows does not matter.
func (r *reading) data() *Data {
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

// conflict stands for a price while rows that contradict each other are found.
const conflict money.Micro = -1

// reject removes quotes whose rows contradicted each other, as a run does.
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

// take returns the history of about so many names: all wears of a skin, or none.
func (d *Data) take(n int) *Data {
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

// skinHash is equal for all wears of a skin.
func skinHash(name string) uint64 {
	if i := strings.LastIndex(name, " ("); i > 0 {
		name = name[:i]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// sorted returns the texts in order, and the new place of each.
func sorted(texts []string) (out []string, place []int32) {
	order := make([]int32, len(texts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
	place = make([]int32, len(texts))
	for i, o := range order {
		out = append(out, texts[o])
		place[o] = int32(i)
	}
	return out, place
}
