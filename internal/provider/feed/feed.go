// Package feed decodes JSON responses of price providers. It is strict, uses no floats and
// keeps only one row in memory. The package handles rows, cells and quotes; each provider
// defines the members.
package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// Reader reads one response of a provider and passes its quotes to a sink. When a method
// returns an error, stop and return that error unchanged.
type Reader struct {
	*CountingSink
	provider string
	dec      *jsontext.Decoder
	scratch  []byte // unescaped texts of the current row
}

// NewReader returns a Reader of src. Use Read instead, unless the format needs other error
// handling.
func NewReader(provider string, src io.Reader, t *CountingSink) *Reader {
	return &Reader{CountingSink: t, provider: provider, dec: NewDecoder(src)}
}

// malformed is the error for a response that breaks the provider's format.
type malformed struct{ detail string }

func (m *malformed) Error() string { return m.detail }

// Malformed returns an error for a response that breaks the provider's format.
func Malformed(format string, args ...any) error {
	return &malformed{fmt.Sprintf(format, args...)}
}

// Read restarts the sink and calls decode for one response. Pass a nil sink if the rows are not
// quotes. For an invalid response, Read returns a *provider.Error of KindProtocol or
// KindTooLarge. A response with more rejected than accepted rows is invalid. Read returns an
// error of the sink, or a *provider.Error of decode, unchanged.
func Read(ctx context.Context, p string, body io.Reader, sink provider.Sink, decode func(*Reader) error) error {
	if sink != nil {
		sink.Restart()
	}
	buffered, err := provider.SniffJSON(p, body)
	if err != nil {
		return err
	}
	r := NewReader(p, buffered, NewCountingSink(sink, MaxItems))
	if err = decode(r); err == nil {
		err = r.End()
	}
	if err == nil {
		err = r.CheckRejectRate()
	}
	switch {
	case err == nil:
		return nil
	case r.sinkErr != nil:
		return r.sinkErr
	}
	return Classify(ctx, p, err)
}

// End returns an error if the document is followed by other data.
func (r *Reader) End() error {
	switch _, err := r.dec.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return Malformed("unexpected data after the document")
	default:
		return err
	}
}

// Classify converts a read error to a *provider.Error. It returns a *provider.Error unchanged.
// After ctx has ended, it returns every error unchanged.
func Classify(ctx context.Context, p string, err error) error {
	var (
		known  *provider.Error
		syntax *jsontext.SyntacticError
		bad    *malformed
		many   tooMany
	)
	switch {
	case errors.As(err, &known), ctx.Err() != nil:
		return err // the transport reports the cause
	case errors.Is(err, ErrRowTooLarge), errors.As(err, &many):
		return &provider.Error{Provider: p, Kind: provider.KindTooLarge, Detail: Innermost(err).Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return provider.Protocol(p, "the response is truncated")
	case errors.As(err, &syntax):
		return provider.Protocol(p, "malformed JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	case errors.As(err, &bad):
		return provider.Protocol(p, "%s", bad.detail)
	}
	return provider.Protocol(p, "the response cannot be read: %s", Clip([]byte(err.Error())))
}

// Innermost returns the last error of a chain.
func Innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// Object reads an object. It calls member with each name, which is valid during the call.
// member must read the value with Object, Array, Row, Cell or Skip.
func (r *Reader) Object(member func(name []byte) error) error {
	if err := r.open('{', "an object"); err != nil {
		return err
	}
	var name []byte
	for r.dec.PeekKind() != '}' {
		quoted, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		name = append(name[:0], Unquote(quoted)...) // copied, because the next read reuses the buffer
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// Array reads an array. It calls element before each value, and element must read that value.
func (r *Reader) Array(element func() error) error {
	if err := r.open('[', "an array"); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// Kind returns the first character of the next value: '{', '[', '"', '0', 'n', 't' or 'f'.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// Is reports whether the next value begins with kind: '{', '[', '"', '0', 'n', 't' or 'f'.
func (r *Reader) Is(kind jsontext.Kind) bool { return r.dec.PeekKind() == kind }

// open reads the start of an object or array.
func (r *Reader) open(kind jsontext.Kind, what string) error {
	token, err := r.dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != kind {
		return Malformed("expected %s, found %s", what, KindName(token.Kind()))
	}
	return nil
}

// KindName returns the name of a kind of JSON value.
func KindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "true or false"
	}
}

// Skip skips the next value.
func (r *Reader) Skip() error { return r.dec.SkipValue() }

// Cell reads the next value of any kind. The cell is valid until the next read.
func (r *Reader) Cell() (Cell, error) {
	value, err := r.value()
	if err != nil {
		return Cell{}, err
	}
	return r.cell(value), nil
}

// Row reads the next value, which must be an object, into cells. Each cell holds the value of
// one name in names and is valid until the next read. If the value is not an object or has one
// of the names twice, Row rejects it and returns false.
func (r *Reader) Row(names []string, cells []Cell) (ok bool, err error) {
	value, err := r.value()
	if err != nil {
		return false, err
	}
	return r.fill(value, names, cells), nil
}

// value reads the next value.
func (r *Reader) value() (jsontext.Value, error) {
	value, err := r.dec.ReadValue()
	if err == nil && len(value) > MaxRow {
		err = ErrRowTooLarge // window checks only before a read, so a value that is too large can already be buffered
	}
	r.scratch = r.scratch[:0]
	return value, err
}

// Within reads the members of an object cell of the current row into cells, like Row. It
// accepts an absent or null object as empty.
func (r *Reader) Within(object Cell, names []string, cells []Cell) (ok bool) {
	if object.Kind <= Null {
		clear(cells)
		return true
	}
	return r.fill(object.Text, names, cells)
}

// Each calls element for each value of an array cell of the current row. It ignores a cell
// that is not an array.
func (r *Reader) Each(array Cell, element func(Cell) error) error {
	if array.Kind != Other || array.Text[0] != '[' {
		return nil
	}
	for c := NewCursor(array.Text); ; {
		value, ok := c.Element()
		if !ok {
			return nil
		}
		if err := element(r.cell(value)); err != nil {
			return err
		}
	}
}

// EachRow reads each object in an array cell of the current row into cells, like Row. It calls
// row for each valid object. It ignores a cell that is not an array.
func (r *Reader) EachRow(array Cell, names []string, cells []Cell, row func() error) error {
	if array.Kind != Other || array.Text[0] != '[' {
		return nil
	}
	for c := NewCursor(array.Text); ; {
		if !c.Open('{') {
			value, ok := c.Element()
			if !ok {
				return nil
			}
			r.fill(value, names, cells) // not an object, so fill rejects it
			continue
		}
		if !r.members(&c, names, cells) {
			continue
		}
		if err := row(); err != nil {
			return err
		}
	}
}

// Members calls member for each member of an object cell of the current row. It ignores a cell
// that is not an object.
func (r *Reader) Members(object Cell, member func(name []byte, value Cell) error) error {
	if object.Kind != Other || object.Text[0] != '{' {
		return nil
	}
	for c := NewCursor(object.Text); ; {
		quoted, value, ok := c.Member()
		if !ok {
			return nil
		}
		var name []byte
		name, r.scratch = AppendUnquote(r.scratch, quoted)
		if err := member(name, r.cell(value)); err != nil {
			return err
		}
	}
}

// fill reads the members of an object into cells. It rejects any other value.
func (r *Reader) fill(value []byte, names []string, cells []Cell) (ok bool) {
	if len(value) == 0 || value[0] != '{' {
		r.Reject("", nil, RejectRow)
		return false
	}
	c := NewCursor(value)
	return r.members(&c, names, cells)
}

// members reads the remaining members of the object at c and steps out of it.
func (r *Reader) members(c *Cursor, names []string, cells []Cell) (ok bool) {
	clear(cells)
	twice := false
	for {
		quoted, member, more := c.Member()
		if !more {
			break
		}
		i := indexOf(names, quoted[1:len(quoted)-1])
		if i < 0 && bytes.IndexByte(quoted, '\\') >= 0 {
			i = indexOf(names, Unquote(quoted))
		}
		if i >= 0 {
			twice = twice || cells[i].Kind != Absent
			cells[i] = r.cell(member)
		}
	}
	if twice {
		r.Reject("", nil, RejectTwice)
	}
	return !twice
}

// indexOf returns the index of name in names, or -1. names is short.
func indexOf(names []string, name []byte) int {
	for i := range names {
		if string(name) == names[i] {
			return i
		}
	}
	return -1
}

// cell returns the cell of a value.
func (r *Reader) cell(value []byte) Cell {
	switch value[0] {
	case '"':
		var text []byte
		text, r.scratch = AppendUnquote(r.scratch, value)
		return Cell{Kind: Text, Text: text}
	case 'n':
		return Cell{Kind: Null}
	case 't', 'f', '{', '[':
		return Cell{Kind: Other, Text: value}
	default:
		return Cell{Kind: Number, Text: value}
	}
}

// Name reads a market hash name, byte for byte. It rejects an invalid name and returns false.
func (r *Reader) Name(market string, c Cell) (name string, ok bool) {
	reason := RejectName
	switch {
	case c.Kind <= Null:
		reason = RejectNoName
	case c.Kind != Text:
		reason = RejectNameKind
	case len(c.Text) <= catalog.MaxName:
		if name = string(c.Text); catalog.CheckName(name) == nil {
			return name, true
		}
	}
	r.Reject(market, c.Text, reason)
	return "", false
}

// Stamp reads the time of a whole response from a cell. An invalid time is an error.
func Stamp(c Cell, format string) (time.Time, error) {
	t, reason := c.Time(format)
	if reason != "" {
		return time.Time{}, Malformed("the time of the response is invalid")
	}
	return t, nil
}
