// Package feed takes the JSON responses of price providers apart: as a stream that
// holds one row at a time, strictly, and without a float. It knows rows, cells
// and quotes; each provider defines what a member means.
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

// Reader steps through one response of a provider and hands its quotes to a sink.
// Errors of its methods end the response: return them as they are.
type Reader struct {
	*Tally
	provider string
	dec      *jsontext.Decoder
	scratch  []byte // texts of the current row that had escapes
}

// NewReader returns a Reader of what src holds. Callers that do not need a format of
// their own use Read.
func NewReader(provider string, src io.Reader, t *Tally) *Reader {
	return &Reader{Tally: t, provider: provider, dec: NewDecoder(src)}
}

// malformed is a response that is not what its provider promises.
type malformed struct{ detail string }

func (m *malformed) Error() string { return m.detail }

// Malformed returns an error for a response that is not what its provider
// promises.
func Malformed(format string, args ...any) error {
	return &malformed{fmt.Sprintf(format, args...)}
}

// Read has decode read one response, whole or not at all. It restarts the sink, so
// what is made of several responses is read without one first; nil is for a response
// whose rows are no quotes by themselves. Failures are *provider.Error of
// KindProtocol or KindTooLarge, but for an error of the sink and one that is a
// *provider.Error already, which are returned as they are. A response of which
// more rows were rejected than not is refused.
func Read(ctx context.Context, p string, body io.Reader, sink provider.Sink, decode func(*Reader) error) error {
	if sink != nil {
		sink.Restart()
	}
	buffered, err := provider.SniffJSON(p, body)
	if err != nil {
		return err
	}
	r := NewReader(p, buffered, NewTally(sink, MaxItems))
	if err = decode(r); err == nil {
		err = r.End()
	}
	if err == nil {
		err = r.Sound()
	}
	switch {
	case err == nil:
		return nil
	case r.refused != nil:
		return r.refused
	}
	return Classify(ctx, p, err)
}

// End fails if anything follows the document.
func (r *Reader) End() error {
	switch _, err := r.dec.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return Malformed("something follows the document")
	default:
		return err
	}
}

// Classify turns an error of reading into a *provider.Error. It returns one that is a
// *provider.Error already, and any error after the context ended, as they are.
func Classify(ctx context.Context, p string, err error) error {
	var (
		known  *provider.Error
		syntax *jsontext.SyntacticError
		bad    *malformed
		many   tooMany
	)
	switch {
	case errors.As(err, &known), ctx.Err() != nil:
		return err // the transport reports what ended it
	case errors.Is(err, ErrRowTooLarge), errors.As(err, &many):
		return &provider.Error{Provider: p, Kind: provider.KindTooLarge, Detail: Innermost(err).Error()}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return provider.Protocol(p, "the response ends too soon")
	case errors.As(err, &syntax):
		return provider.Protocol(p, "malformed JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	case errors.As(err, &bad):
		return provider.Protocol(p, "%s", bad.detail)
	}
	return provider.Protocol(p, "the response cannot be read: %s", Clip([]byte(err.Error())))
}

// Innermost returns what an error wraps in the end.
func Innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// Object reads an object. It calls member with the name of each member, valid
// during the call, which reads the value: by Object, Array, Row, Cell or Skip.
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
		name = append(name[:0], Unquote(quoted)...) // reading the value reuses its buffer
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// Array reads an array. It calls element before each of its values, which
// element reads.
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

// Kind returns how the next value begins: '{', '[', '"', '0', 'n', 't' or 'f'.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// Is reports whether the next value begins like kind: '{', '[', '"', '0', 'n',
// 't' or 'f'.
func (r *Reader) Is(kind jsontext.Kind) bool { return r.dec.PeekKind() == kind }

// open reads the beginning of an object or array.
func (r *Reader) open(kind jsontext.Kind, what string) error {
	token, err := r.dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != kind {
		return Malformed("%s instead of %s", KindName(token.Kind()), what)
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
		return "a text"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "true or false"
	}
}

// Skip passes over the next value.
func (r *Reader) Skip() error { return r.dec.SkipValue() }

// Cell reads the next value, whatever it is. It is valid until the next read.
func (r *Reader) Cell() (Cell, error) {
	value, err := r.value()
	if err != nil {
		return Cell{}, err
	}
	return r.cell(value), nil
}

// Row reads the next value, an object, into cells: one for each of the members
// that names lists, valid until the next read. What is no object, or has one of
// these members twice, is rejected; then ok is false.
func (r *Reader) Row(names []string, cells []Cell) (ok bool, err error) {
	value, err := r.value()
	if err != nil {
		return false, err
	}
	return r.fill(value, names, cells), nil
}

// value reads the next value as it is.
func (r *Reader) value() (jsontext.Value, error) {
	value, err := r.dec.ReadValue()
	if err == nil && len(value) > MaxRow {
		err = ErrRowTooLarge // the decoder may have had it in its buffer already
	}
	r.scratch = r.scratch[:0]
	return value, err
}

// Within reads an object that is a cell of the current row into cells, as Row
// does. One that is absent or null has no members, and is not rejected.
func (r *Reader) Within(object Cell, names []string, cells []Cell) (ok bool) {
	if object.Kind <= Null {
		clear(cells)
		return true
	}
	return r.fill(object.Text, names, cells)
}

// Each calls element with each value of an array that is a cell of the current
// row. What is no array has none.
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

// EachRow reads each value of an array that is a cell of the current row, an object,
// into cells, as Row does, and calls row when it could. What is no array has none.
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
			r.fill(value, names, cells) // it is no object
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

// Members calls member with each member of an object that is a cell of the
// current row. What is no object has none.
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

// fill puts the members of an object where they belong. What is none is rejected.
func (r *Reader) fill(value []byte, names []string, cells []Cell) (ok bool) {
	if len(value) == 0 || value[0] != '{' {
		r.Reject("", nil, RejectRow)
		return false
	}
	c := NewCursor(value)
	return r.members(&c, names, cells)
}

// members puts the members of the object that c is within where they belong, and
// leaves it.
func (r *Reader) members(c *Cursor, names []string, cells []Cell) (ok bool) {
	clear(cells)
	twice := false
	for {
		quoted, member, more := c.Member()
		if !more {
			break
		}
		i := place(names, quoted[1:len(quoted)-1])
		if i < 0 && bytes.IndexByte(quoted, '\\') >= 0 {
			i = place(names, Unquote(quoted))
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

// place returns where a name is among names, which are few; -1 if it is not.
func place(names []string, name []byte) int {
	for i := range names {
		if string(name) == names[i] {
			return i
		}
	}
	return -1
}

// cell makes a cell of a value.
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

// Name reads a market hash name, byte for byte. What cannot be a name is
// rejected; then ok is false.
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

// Stamp reads the time of a whole response from a cell; a wrong one fails it.
func Stamp(c Cell, format string) (time.Time, error) {
	t, reason := c.Time(format)
	if reason != "" {
		return time.Time{}, Malformed("the response's own time cannot be read")
	}
	return t, nil
}
