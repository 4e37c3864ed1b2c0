package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	reader "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"assay/internal/randtest"
)

// record is a row with columns of all types. The reader is an independent implementation.
type record struct {
	App    int32   `parquet:"app"`
	Name   string  `parquet:"name"`
	Price  int64   `parquet:"price,decimal(6:18)"`
	Number int64   `parquet:"number"`
	At     int64   `parquet:"at,timestamp(microsecond)"`
	Small  *int32  `parquet:"small,optional"`
	Note   *string `parquet:"note,optional"`
	Low    *int64  `parquet:"low,optional,decimal(6:18)"`
	Count  *int64  `parquet:"count,optional"`
	Seen   *int64  `parquet:"seen,optional,timestamp(microsecond)"`
}

func recordColumns() []Column {
	return []Column{
		{"app", Int32, false},
		{"name", String, false},
		{"price", Decimal, false},
		{"number", Int64, false},
		{"at", Timestamp, false},
		{"small", Int32, true},
		{"note", String, true},
		{"low", Decimal, true},
		{"count", Int64, true},
		{"seen", Timestamp, true},
	}
}

func (r *record) values() []Value {
	row := []Value{Int(r.App), Text(r.Name), Int(r.Price), Int(r.Number), Int(r.At), nil, nil, optional(r.Low), optional(r.Count), optional(r.Seen)}
	if r.Small != nil {
		row[5] = Int(*r.Small)
	}
	if r.Note != nil {
		row[6] = Text(*r.Note)
	}
	return row
}

func optional(n *int64) Value {
	if n == nil {
		return nil
	}
	return Int(*n)
}

func recordOptions(rowGroup int) Options {
	return Options{Columns: recordColumns(), RowGroup: rowGroup, Metadata: [][2]string{{"b", "1"}, {"a", ""}, {"é", "2"}}, CreatedBy: "test version 1"}
}

// writeRecords returns the file of the records.
func writeRecords(t *testing.T, records []record, rowGroup int) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, recordOptions(rowGroup))
	for i := range records {
		if err := w.Write(records[i].values()...); err != nil {
			t.Fatalf("write row %d: got error %v, want none", i, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("close: got error %v, want none", err)
	}
	return file.Bytes()
}

func openFile(t *testing.T, file []byte) *reader.File {
	t.Helper()
	f, err := reader.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("open the file: got error %v, want none", err)
	}
	return f
}

// checkRecords reads the file and compares it with the records.
func checkRecords(t *testing.T, file []byte, want []record, rowGroup int) {
	t.Helper()
	f := openFile(t, file)
	if f.NumRows() != int64(len(want)) {
		t.Errorf("got %d rows in the footer, want %d", f.NumRows(), len(want))
	}
	if got, groups := len(f.RowGroups()), (len(want)+rowGroup-1)/rowGroup; got != groups {
		t.Errorf("got %d row groups, want %d", got, groups)
	}
	left := len(want)
	for i, g := range f.RowGroups() {
		if n := min(left, rowGroup); g.NumRows() != int64(n) {
			t.Errorf("row group %d: got %d rows, want %d", i, g.NumRows(), n)
		}
		left -= rowGroup
	}
	got, err := reader.Read[record](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("read the file: got error %v, want none", err)
	}
	if len(got) != len(want) {
		t.Fatalf("read %d rows, want %d", len(got), len(want))
	}
	for i := range want {
		if d := cmp.Diff(want[i], got[i]); d != "" {
			t.Fatalf("row %d of %d in groups of %d: %s", i, len(want), rowGroup, d)
		}
	}
}

// randomInt returns small, large and extreme integers of both signs.
func randomInt(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return []int64{0, -1, 1, math.MinInt64, math.MaxInt64, math.MinInt32, math.MaxInt32}[r.IntN(7)]
	case 1:
		return int64(r.Uint64())
	default:
		return r.Int64N(200) - 100
	}
}

// randomText returns valid UTF-8 with runes of 1 to 4 bytes.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(20) {
		limit := []rune{0x80, 0x800, 0x10000, utf8.MaxRune + 1}[r.IntN(4)]
		if c := r.Int32N(limit); utf8.ValidRune(c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// randomRecords returns n records. present reports whether the optional values of a row have a value.
func randomRecords(r *rand.Rand, n int, present func(row int) bool) []record {
	records := make([]record, n)
	for i := range records {
		records[i] = record{App: int32(randomInt(r)), Name: randomText(r), Price: randomInt(r), Number: randomInt(r), At: randomInt(r)}
		if !present(i) {
			continue
		}
		small, note, low, count, seen := int32(randomInt(r)), randomText(r), randomInt(r), randomInt(r), randomInt(r)
		records[i].Small, records[i].Note, records[i].Low, records[i].Count, records[i].Seen = &small, &note, &low, &count, &seen
	}
	return records
}

func TestWriter_WritesWhatAReaderReads(t *testing.T) {
	r := randtest.New(t)
	nulls := map[string]func(int) bool{
		"no nulls":     func(int) bool { return true },
		"only nulls":   func(int) bool { return false },
		"random nulls": func(int) bool { return r.IntN(2) == 0 },
		"few nulls":    func(int) bool { return r.IntN(50) != 0 },
		"few values":   func(int) bool { return r.IntN(50) == 0 },
		"last null":    func(row int) bool { return row%8 != 7 },
		"runs":         func(row int) bool { return row/11%2 == 0 },
	}
	const rowGroup = 100
	for name, present := range nulls {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 7, 8, 9, rowGroup - 1, rowGroup, rowGroup + 1, 3 * rowGroup, 3*rowGroup + 37} {
				records := randomRecords(r, n, present)
				checkRecords(t, writeRecords(t, records, rowGroup), records, rowGroup)
			}
		})
	}
}

func TestWriter_KeepsRandomRows(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(200, 20_000) {
		rowGroup, density := 1+r.IntN(70), r.IntN(101)
		records := randomRecords(r, r.IntN(200), func(int) bool { return r.IntN(100) < density })
		for i := range records { // nulls of columns are independent
			if r.IntN(3) == 0 {
				records[i].Note = nil
			}
			if r.IntN(3) == 0 {
				records[i].Small = nil
			}
		}
		checkRecords(t, writeRecords(t, records, rowGroup), records, rowGroup)
	}
}

func TestWriter_KeepsRowGroupOf50000Rows(t *testing.T) {
	r := randtest.New(t)
	records := randomRecords(r, 50_001, func(int) bool { return r.IntN(3) != 0 })
	checkRecords(t, writeRecords(t, records, 50_000), records, 50_000)
}

func TestWriter_WritesSchemaAndMetadata(t *testing.T) {
	f := openFile(t, writeRecords(t, make([]record, 3), 2))
	const want = `message schema {
	required int32 app (INT(32,true));
	required binary name (STRING);
	required int64 price (DECIMAL(18,6));
	required int64 number (INT(64,true));
	required int64 at (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int32 small (INT(32,true));
	optional binary note (STRING);
	optional int64 low (DECIMAL(18,6));
	optional int64 count (INT(64,true));
	optional int64 seen (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
}`
	if d := cmp.Diff(want, fmt.Sprint(f.Schema())); d != "" {
		t.Error(d)
	}
	var got []string
	for _, e := range f.Metadata().Schema[1:] {
		got = append(got, fmt.Sprint(e.ConvertedType.V, e.Precision.V, e.Scale.V))
	}
	integer32, text, decimal := fmt.Sprint(deprecated.Int32, 0, 0), fmt.Sprint(deprecated.UTF8, 0, 0), fmt.Sprint(deprecated.Decimal, 18, 6)
	integer64, timestamp := fmt.Sprint(deprecated.Int64, 0, 0), fmt.Sprint(deprecated.TimestampMicros, 0, 0)
	if d := cmp.Diff([]string{integer32, text, decimal, integer64, timestamp, integer32, text, decimal, integer64, timestamp}, got); d != "" {
		t.Errorf("converted types: %s", d)
	}
	for key, want := range map[string]string{"a": "", "b": "1", "é": "2"} {
		if got, ok := f.Lookup(key); !ok || got != want {
			t.Errorf("metadata %s: got %q, %v, want %q", key, got, ok, want)
		}
	}
	if m := f.Metadata(); m.Version != 1 || m.CreatedBy != "test version 1" || len(m.ColumnOrders) != len(recordColumns()) {
		t.Errorf("got version %d, created by %q and %d column orders, want 1, test version 1 and %d", m.Version, m.CreatedBy, len(m.ColumnOrders), len(recordColumns()))
	}
}

func TestWriter_WritesStatisticsAndSizes(t *testing.T) {
	r := randtest.New(t)
	const rowGroup = 40
	records := randomRecords(r, 3*rowGroup+1, func(row int) bool { return row < rowGroup || row >= 2*rowGroup && r.IntN(2) == 0 })
	file := writeRecords(t, records, rowGroup)
	offset := int64(len(magic))
	for i, g := range openFile(t, file).Metadata().RowGroups {
		rows := records[i*rowGroup : min((i+1)*rowGroup, len(records))]
		if g.FileOffset != offset {
			t.Errorf("row group %d: got offset %d, want %d", i, g.FileOffset, offset)
		}
		var raw int64
		for j, c := range g.Columns {
			column, m := recordColumns()[j], c.MetaData
			if m.DataPageOffset != offset || m.NumValues != int64(len(rows)) {
				t.Errorf("row group %d, column %s: got %d values at %d, want %d at %d", i, column.Name, m.NumValues, m.DataPageOffset, len(rows), offset)
			}
			offset, raw = offset+m.TotalCompressedSize, raw+m.TotalUncompressedSize
			var nulls int64
			smallest, largest, found := int64(math.MaxInt64), int64(math.MinInt64), false
			for k := range rows {
				switch v := rows[k].values()[j].(type) {
				case nil:
					nulls++
				case Int:
					smallest, largest, found = min(smallest, int64(v)), max(largest, int64(v)), true
				}
			}
			var wantMin, wantMax []byte
			if found {
				wantMin, wantMax = column.Type.append(nil, smallest), column.Type.append(nil, largest)
			}
			if s := m.Statistics; s.NullCount != nulls || !bytes.Equal(s.MinValue, wantMin) || !bytes.Equal(s.MaxValue, wantMax) {
				t.Errorf("row group %d, column %s: got %d nulls from %x to %x, want %d from %x to %x",
					i, column.Name, s.NullCount, s.MinValue, s.MaxValue, nulls, wantMin, wantMax)
			}
		}
		if g.TotalByteSize != raw || g.TotalCompressedSize != offset-g.FileOffset {
			t.Errorf("row group %d: got %d bytes, compressed %d, want %d and %d", i, g.TotalByteSize, g.TotalCompressedSize, raw, offset-g.FileOffset)
		}
	}
}

func TestWriter_WritesEachRowGroupWhenItIsFull(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, recordOptions(10))
	size := file.Len()
	for i := range 100 {
		if err := w.Write((&record{}).values()...); err != nil {
			t.Fatal(err)
		}
		if full := (i+1)%10 == 0; full != (file.Len() > size) {
			t.Errorf("row %d: the file grew from %d to %d bytes, want growth only at the end of a row group", i, size, file.Len())
		}
		size = file.Len()
	}
}

func TestWriter_LimitsSizeOfRowGroup(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{Columns: []Column{{Name: "text", Type: String}}, RowGroup: 1000})
	text := strings.Repeat("x", groupSize/10)
	for range 25 {
		if err := w.Write(Text(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, g := range openFile(t, file.Bytes()).RowGroups() {
		got = append(got, g.NumRows())
	}
	if d := cmp.Diff([]int64{10, 10, 5}, got); d != "" {
		t.Error(d)
	}
}

// fullDisk fails once it contains room bytes.
type fullDisk struct{ room int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(d.room, len(b))
	if d.room -= n; n < len(b) {
		return n, errFull
	}
	return n, nil
}

func TestWriter_ReturnsErrorOfDestination(t *testing.T) {
	records := randomRecords(randtest.New(t), 5, func(row int) bool { return row%2 == 0 })
	size := len(writeRecords(t, records, 2))
	rooms := []int{size - 1, size}
	for room := 0; room < size; room += randtest.Count(31, 1) {
		rooms = append(rooms, room)
	}
	for _, room := range rooms {
		w := NewWriter(&fullDisk{room}, recordOptions(2))
		var err error
		for i := range records {
			next := w.Write(records[i].values()...)
			if err != nil && !errors.Is(next, err) {
				t.Errorf("room for %d bytes, row %d: got error %v after an error, want it again", room, i, next)
			}
			err = next
		}
		if err := w.Close(); errors.Is(err, errFull) != (room < size) {
			t.Errorf("room for %d of %d bytes: got error %v on close, want an error if there is too little room", room, size, err)
		}
		if room < len(magic) && err == nil {
			t.Errorf("room for %d bytes: got no error on write, want %v", room, errFull)
		}
	}
}

func TestWriter_RefusesValuesOfOtherTypes(t *testing.T) {
	columns := []Column{{"number", Int32, false}, {"text", String, true}}
	for name, c := range map[string]struct {
		row  []Value
		want string
	}{
		"null":          {[]Value{nil, nil}, "parquet: column number: got null in a required column"},
		"text":          {[]Value{Text("1"), nil}, "parquet: column number: text of 1 bytes does not fit the column type"},
		"integer":       {[]Value{Int(1), Int(2)}, "parquet: column text: integer 2 is out of range for the column type"},
		"too large":     {[]Value{Int(math.MaxInt32 + 1), nil}, "parquet: column number: integer 2147483648 is out of range for the column type"},
		"too small":     {[]Value{Int(math.MinInt32 - 1), nil}, "parquet: column number: integer -2147483649 is out of range for the column type"},
		"missing value": {[]Value{Int(1)}, "parquet: got 1 values for 2 columns"},
		"no values":     {nil, "parquet: got 0 values for 2 columns"},
		"extra value":   {[]Value{Int(1), nil, nil}, "parquet: got 3 values for 2 columns"},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w := NewWriter(&file, Options{Columns: columns, RowGroup: 1})
			err := w.Write(c.row...)
			if err == nil || err.Error() != c.want {
				t.Errorf("got error %v, want %s", err, c.want)
			}
			if next := w.Write(Int(1), nil); next != err {
				t.Errorf("got error %v for the next row, want %v again", next, err)
			}
			if closed := w.Close(); closed != err || file.Len() != len(magic) {
				t.Errorf("got error %v on close and %d bytes, want %v and no row group or footer", closed, file.Len(), err)
			}
		})
	}
}
