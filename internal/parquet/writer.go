// Package parquet writes Parquet files of flat rows. It holds one row group in memory, and about 100
// bytes for each column of a finished group. It does not read files. Each column of a row group is
// one page of version 1 in plain encoding, compressed with zstd. There are no dictionaries, no page
// index and no nested columns.
//
// The specification is github.com/apache/parquet-format: README.md (layout of a file), Encodings.md
// (values and levels) and src/main/thrift/parquet.thrift (metadata). Numbers of fields and
// enumerations in this package are those of parquet.thrift.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

const (
	magic     = "PAR1"
	plain     = int32(0) // encoding of values
	rle       = int32(3) // encoding of levels
	codecZstd = int32(6)

	// groupSize is the size of values, in bytes, at which a row group ends even if it has fewer rows.
	groupSize = 64 << 20
	// maxText limits a string, so that a page is smaller than 2 GiB, the limit of the format.
	maxText = 1 << 30
)

// Column describes a column. Only an optional column can contain nulls.
type Column struct {
	Name     string
	Type     Type
	Optional bool
}

// Value is a value of a row: Int, Text, or nil for null.
type Value interface{ isValue() }

// Int is a value of a column of any type but String.
type Int int64

// Text is a value of a String column. It must be valid UTF-8.
type Text string

func (Int) isValue()  {}
func (Text) isValue() {}

// Options describe a file.
type Options struct {
	Columns   []Column
	RowGroup  int         // rows of a row group
	Metadata  [][2]string // keys and values
	CreatedBy string      // program and version, in the form "NAME version VERSION"
}

// Writer writes a file. All calls after an error return that error. It is not safe for concurrent use.
type Writer struct {
	to      io.Writer
	options Options
	encoder *zstd.Encoder
	chunks  []chunk // of the current row group
	rows    int     // of the current row group
	size    int     // of the values of the current row group, in bytes
	groups  list    // RowGroup of each finished group
	total   int64   // rows of the finished groups
	offset  int64   // bytes written
	err     error
}

// chunk contains the values of a column in the current row group.
type chunk struct {
	levels   []byte // a bit for each row, lowest bit first: 0 for null, 1 for a value
	values   []byte // values that are not null, encoded
	nulls    int64
	min, max int64 // of integers; min > max if there are none
}

// NewWriter starts a file. The caller must call Close to complete it.
func NewWriter(to io.Writer, o Options) *Writer {
	// NewWriter returns errors only for invalid options.
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	w := &Writer{to: to, options: o, encoder: encoder, chunks: make([]chunk, len(o.Columns))}
	for i := range w.chunks {
		w.chunks[i].reset()
	}
	w.emit([]byte(magic))
	return w
}

// Write adds a row. It needs one value per column.
func (w *Writer) Write(row ...Value) error {
	if w.err == nil && len(row) != len(w.chunks) {
		w.err = fmt.Errorf("parquet: got %d values for %d columns", len(row), len(w.chunks))
	}
	for i, v := range row {
		if w.err != nil {
			return w.err
		}
		c := &w.chunks[i]
		before := len(c.values)
		if err := c.add(&w.options.Columns[i], v, w.rows); err != nil {
			w.err = fmt.Errorf("parquet: column %s: %w", w.options.Columns[i].Name, err)
		}
		w.size += len(c.values) - before
	}
	if w.rows++; w.rows >= w.options.RowGroup || w.size >= groupSize {
		w.flush()
	}
	return w.err
}

// Close completes the file. It does not close the destination.
func (w *Writer) Close() error {
	w.flush()
	footer := appendThrift(nil, w.footer())
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	w.emit(append(footer, magic...))
	return w.err
}

func (w *Writer) emit(b []byte) {
	if w.err == nil {
		var n int
		n, w.err = w.to.Write(b)
		w.offset += int64(n)
	}
}

// flush writes the current row group, if it has rows.
func (w *Writer) flush() {
	if w.rows == 0 || w.err != nil {
		return
	}
	start, raw, columns := w.offset, int64(0), list{}
	for i := range w.chunks {
		metadata, size := w.page(&w.chunks[i], &w.options.Columns[i])
		columns = append(columns, structure{2: int64(0), 3: metadata}) // ColumnChunk; its file_offset is deprecated
		raw += size
		w.chunks[i].reset()
	}
	group := structure{1: columns, 2: raw, 3: int64(w.rows), 5: start, 6: w.offset - start}
	w.groups = append(w.groups, encoded(appendThrift(nil, group)))
	w.total, w.rows, w.size = w.total+int64(w.rows), 0, 0
}

// page writes the page of a chunk. It returns the ColumnMetaData, and the size before compression.
func (w *Writer) page(c *chunk, column *Column) (metadata structure, raw int64) {
	data, encodings := c.values, list{plain}
	if column.Optional {
		data, encodings = append(c.definitionLevels(w.rows), c.values...), list{plain, rle}
	}
	compressed := w.encoder.EncodeAll(data, nil)
	header := appendThrift(nil, structure{ // PageHeader
		1: int32(0), 2: int32(len(data)), 3: int32(len(compressed)),
		5: structure{1: int32(w.rows), 2: plain, 3: rle, 4: rle}, // DataPageHeader
	})
	start := w.offset
	w.emit(header)
	w.emit(compressed)
	statistics := structure{3: c.nulls, 6: nil}
	if c.min <= c.max {
		statistics[5], statistics[6] = string(column.Type.append(nil, c.max)), string(column.Type.append(nil, c.min))
	}
	physical, _, _ := column.Type.describe()
	raw = int64(len(header) + len(data))
	return structure{
		1: physical, 2: encodings, 3: list{column.Name}, 4: codecZstd, 5: int64(w.rows),
		6: raw, 7: w.offset - start, 9: start, 12: statistics,
	}, raw
}

// footer returns the FileMetaData.
func (w *Writer) footer() structure {
	columns := w.options.Columns
	schema := list{structure{4: "schema", 5: int32(len(columns))}} // the root
	var metadata, orders list
	for _, c := range columns {
		physical, converted, logical := c.Type.describe()
		element := structure{1: physical, 3: int32(0), 4: c.Name, 6: converted, 10: logical}
		if c.Optional {
			element[3] = int32(1)
		}
		if c.Type == Decimal {
			element[7], element[8] = int32(scale), int32(precision)
		}
		schema, orders = append(schema, element), append(orders, structure{1: structure{}})
	}
	for _, pair := range w.options.Metadata {
		metadata = append(metadata, structure{1: pair[0], 2: pair[1]})
	}
	return structure{1: int32(1), 2: schema, 3: w.total, 4: w.groups, 5: metadata, 6: w.options.CreatedBy, 7: orders}
}

// add appends the value of a row, counted from 0.
func (c *chunk) add(column *Column, v Value, row int) error {
	if row%8 == 0 {
		c.levels = append(c.levels, 0)
	}
	switch v := v.(type) {
	case nil:
		if !column.Optional {
			return errors.New("got null in a required column")
		}
		c.nulls++
		return nil
	case Int:
		if column.Type == String || column.Type == Int32 && Int(int32(v)) != v {
			return fmt.Errorf("integer %d is out of range for the column type", v)
		}
		c.min, c.max = min(c.min, int64(v)), max(c.max, int64(v))
		c.values = column.Type.append(c.values, int64(v))
	case Text:
		if column.Type != String || len(v) > maxText {
			return fmt.Errorf("text of %d bytes does not fit the column type", len(v))
		}
		c.values = append(binary.LittleEndian.AppendUint32(c.values, uint32(len(v))), v...)
	}
	c.levels[len(c.levels)-1] |= 1 << (row % 8)
	return nil
}

// definitionLevels returns the encoded levels with their size: a run length if all are equal, and
// otherwise one bit-packed run. The compression shortens what repeats in it.
func (c *chunk) definitionLevels(rows int) []byte {
	levels := make([]byte, 4, len(c.levels)+len(c.values)+16)
	switch c.nulls {
	case 0:
		levels = append(binary.AppendUvarint(levels, uint64(rows)<<1), 1)
	case int64(rows):
		levels = append(binary.AppendUvarint(levels, uint64(rows)<<1), 0)
	default:
		levels = append(binary.AppendUvarint(levels, uint64(len(c.levels))<<1|1), c.levels...)
	}
	binary.LittleEndian.PutUint32(levels, uint32(len(levels)-4))
	return levels
}

// reset prepares the chunk for the next row group. It keeps the buffers.
func (c *chunk) reset() {
	*c = chunk{levels: c.levels[:0], values: c.values[:0], min: math.MaxInt64, max: math.MinInt64}
}
