package pricelist

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"assay/internal/provider/feed"
)

// csvReader reads CSV as defined by RFC 4180. Unlike encoding/csv, it preserves line breaks
// within a field and limits the size of a record.
type csvReader struct {
	src       io.Reader
	delimiter byte
	buf       []byte
	start     int // index of the first unread byte in buf
	spans     []span
	fields    [][]byte
	record    int // number of records read
	width     int // number of fields per record; 0 if unknown
	err       error
}

// span is the range of a field within a record.
type span struct {
	from, to int
	escaped  bool // whether it contains doubled quotes
}

var errMore = errors.New("the record is incomplete")

const (
	csvBuffer = 64 << 10
	maxIdle   = 100 // maximum number of consecutive empty reads

	maxColumns = 4096
)

func newCSVReader(src io.Reader, delimiter byte) *csvReader {
	return &csvReader{src: src, delimiter: delimiter, buf: make([]byte, 0, csvBuffer)}
}

// next returns the fields of the next record. They are valid until the next call. It
// returns io.EOF at the end.
func (r *csvReader) next() ([][]byte, error) {
	for {
		n, err := r.split(r.buf[r.start:])
		if err == errMore {
			if err = r.fill(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		record := r.buf[r.start : r.start+n]
		r.start += n
		if len(r.spans) == 0 {
			continue // an empty line
		}
		if r.width == 0 {
			r.width = len(r.spans)
		}
		if len(r.spans) != r.width {
			return nil, r.fault(fmt.Sprintf("has %d fields, but the first record has %d", len(r.spans), r.width))
		}
		r.record++
		return r.take(record), nil
	}
}

// fault returns an error about the current record.
func (r *csvReader) fault(detail string) error {
	return feed.Malformed("record %d %s", r.record+1, detail)
}

// fill reads until the buffer is full. Otherwise, split would scan the same record many
// times if src returns only a few bytes per read.
func (r *csvReader) fill() error {
	if r.err != nil {
		return r.err
	}
	switch {
	case r.start > 0:
		r.buf = r.buf[:copy(r.buf, r.buf[r.start:])]
		r.start = 0
	case len(r.buf) == cap(r.buf):
		if len(r.buf) >= feed.MaxRow {
			return feed.ErrRowTooLarge
		}
		r.buf = append(make([]byte, 0, 2*cap(r.buf)), r.buf...)
	}
	for idle := 0; len(r.buf) < cap(r.buf); idle++ {
		n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if n > 0 {
			idle = 0
		}
		if err == nil && idle == maxIdle {
			err = io.ErrNoProgress
		}
		if err != nil {
			r.err = err // next returns it after the buffered records
			break
		}
	}
	return nil
}

// split finds the fields of the first record in b. It returns the length of the record
// with its line break, or errMore if the record is incomplete.
func (r *csvReader) split(b []byte) (int, error) {
	r.spans = r.spans[:0]
	last := r.err == io.EOF
	if len(b) == 0 {
		if last {
			return 0, io.EOF
		}
		return 0, errMore
	}
	if n := lineEnd(b, 0); n > 0 {
		return n, nil
	}
	if last && string(b) == "\r" {
		return 1, nil
	}
	for i := 0; ; i++ {
		s, end, err := r.field(b, i, last)
		if err != nil {
			return 0, err
		}
		if len(r.spans) == maxColumns {
			return 0, r.fault(fmt.Sprintf("has more than %d fields", maxColumns))
		}
		r.spans = append(r.spans, s)
		i = end
		if i < len(b) && b[i] == r.delimiter {
			continue
		}
		if n := lineEnd(b, i); n > 0 {
			return i + n, nil
		}
		// Neither a delimiter nor a complete line break follows the field. This is valid
		// only at the end of the list.
		if !last {
			return 0, errMore
		}
		return len(b), nil
	}
}

// field returns the field that begins at i and the index after it.
func (r *csvReader) field(b []byte, i int, last bool) (s span, end int, err error) {
	if i < len(b) && b[i] == '"' {
		return r.quoted(b, i+1, last)
	}
	delimiter := r.delimiter
	for end = i; end < len(b); end++ {
		switch c := b[end]; {
		case c == delimiter || c == '\n':
			return span{from: i, to: end}, end, nil
		case c == '\r' && (end+1 == len(b) && last || end+1 < len(b) && b[end+1] == '\n'):
			return span{from: i, to: end}, end, nil
		case c == '"':
			return s, 0, r.fault("has a quote in an unquoted field")
		}
	}
	if !last {
		return s, 0, errMore
	}
	return span{from: i, to: end}, end, nil
}

// quoted returns the quoted field whose text begins at i, and the index after the field.
func (r *csvReader) quoted(b []byte, i int, last bool) (s span, end int, err error) {
	s.from = i
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n + 1
		switch {
		case i == len(b):
			if !last {
				return s, 0, errMore
			}
		case b[i] == '"':
			s.escaped = true
			i++
			continue
		case b[i] != r.delimiter && b[i] != '\n' && b[i] != '\r':
			return s, 0, r.fault("has text after a closing quote")
		case b[i] == '\r' && i+1 == len(b) && !last:
			return s, 0, errMore
		case b[i] == '\r' && i+1 < len(b) && b[i+1] != '\n':
			return s, 0, r.fault("has text after a closing quote")
		}
		s.to = i - 1
		return s, i, nil
	}
	if !last {
		return s, 0, errMore
	}
	return s, 0, io.ErrUnexpectedEOF
}

// lineEnd returns the length of the line break at i, or 0 if there is none.
func lineEnd(b []byte, i int) int {
	switch {
	case i < len(b) && b[i] == '\n':
		return 1
	case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
		return 2
	}
	return 0
}

// take splits the record at its spans and unescapes doubled quotes in place.
func (r *csvReader) take(record []byte) [][]byte {
	r.fields = r.fields[:0]
	for _, s := range r.spans {
		f := record[s.from:s.to:s.to]
		if s.escaped {
			f = undouble(f)
		}
		r.fields = append(r.fields, f)
	}
	return r.fields
}

func undouble(f []byte) []byte {
	out := f[:0]
	for i := 0; i < len(f); i++ {
		out = append(out, f[i])
		if f[i] == '"' {
			i++ // the second quote of the pair
		}
	}
	return out
}

func readCSV(src io.Reader, r *rows) error {
	l := r.list
	in := newCSVReader(src, l.delimiter)
	cells := make([]feed.Cell, len(l.fields))
	header := l.columns
	if header == nil {
		record, err := in.next()
		if err == io.EOF {
			return feed.Malformed("the list is empty")
		}
		if err != nil {
			return err
		}
		for _, f := range record {
			header = append(header, string(f))
		}
	}
	in.width = len(header)
	at, err := columns(l, header)
	if err != nil {
		return err
	}
	for {
		record, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i, column := range at {
			cells[i] = feed.Cell{Kind: feed.Text, Text: record[column]}
		}
		if !r.begin(nil, cells) {
			continue
		}
		if err := r.row(cells); err != nil {
			return err
		}
	}
}

// columns returns the index in the header of each field of the list.
func columns(l *list, header []string) ([]int, error) {
	at := make([]int, len(l.fields))
	var missing []string
	for i, name := range l.fields {
		at[i] = none
		for j, column := range header {
			if column != name {
				continue
			}
			if at[i] != none {
				return nil, feed.Malformed("two columns have the name %q", name)
			}
			at[i] = j
		}
		if at[i] == none {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return nil, feed.Malformed("missing column %s; found %s", quoteAll(missing), quoteSome(header))
	}
	return at, nil
}
