// Package strictjson reads JSON that comes from outside, member by member, and
// collects everything that is wrong with it. Names of members count byte for
// byte; duplicate and unknown ones, invalid UTF-8 and values of another type
// are faults. It reads as a stream: what a caller does not keep costs no memory.
package strictjson

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/fault"
)

const (
	// maxFields is how many faults are listed one by one, unless NewDocumentReader says
	// otherwise; the rest is counted.
	maxFields = 20
	// maxEcho bounds, in bytes, how much of an input its own faults repeat.
	maxEcho = 200
	// maxValue bounds, in bytes, a single string or number: it is held whole.
	// No Text may be longer, not even where every character is escaped.
	maxValue = 64 << 10
)

// Reader reads one JSON value. After malformed JSON, or Stop, all methods do
// nothing and return false; Finish returns why. A method that finds a value of
// another type than wanted notes the fault, skips the value and returns false.
type Reader struct {
	dec        *jsontext.Decoder
	fields     []fault.Field
	most       int  // fields at most
	more       int  // faults beyond fields
	duplicates bool // a duplicate member is a fault like others, and does not end the reading
	err        error
}

// NewReader returns a Reader of what r holds. A string or number of more than
// 64 KiB ends the reading, with a fault of kind TooLarge, before it is read.
func NewReader(r io.Reader) *Reader {
	return newReader(r, Reader{most: maxFields})
}

// NewDocumentReader is NewReader for documents that people edit: it lists up to n
// faults one by one, and continues after a duplicate member.
func NewDocumentReader(r io.Reader, n int) *Reader {
	return newReader(r, Reader{most: n, duplicates: true})
}

func newReader(from io.Reader, r Reader) *Reader {
	in := &bounded{from: from}
	in.dec = jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(r.duplicates))
	r.dec = in.dec
	return &r
}

// bounded is what the decoder reads from. The decoder requests more only where
// what it holds does not end the value that it is in.
type bounded struct {
	from io.Reader
	dec  *jsontext.Decoder
	read int64
}

// Read is that of io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if at := b.dec.InputOffset(); b.read-at > maxValue {
		return 0, fault.New(fault.TooLarge, "value_too_large",
			"A value of the body, at byte %d, is longer than %d KiB.", at, maxValue>>10)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}

// Object reads an object. It calls member for each of its members, to read the
// value; member returns false, and reads nothing, where it does not know the
// name. known is used only to suggest the probably intended name.
func (r *Reader) Object(known []string, member func(name string) bool) bool {
	if !r.open('{', "an object") {
		return false
	}
	var seen map[string]bool
	if r.duplicates {
		seen = map[string]bool{}
	}
	for r.err == nil && r.dec.PeekKind() != '}' {
		token, ok := r.token()
		if !ok {
			return false
		}
		name := token.String()
		switch {
		case seen[name]:
			r.note(TwiceMember, twice)
			r.Skip()
		case !member(name):
			r.unknown(name, known)
		}
		if seen != nil {
			seen[name] = true
		}
	}
	_, ok := r.token()
	return ok
}

// Array reads an array. It calls element with the index of each of its
// elements, to read it.
func (r *Reader) Array(element func(i int)) bool {
	if !r.open('[', "an array") {
		return false
	}
	for i := 0; r.err == nil && r.dec.PeekKind() != ']'; i++ {
		element(i)
	}
	_, ok := r.token()
	return ok
}

// Text reads a string of at least minBytes and at most maxBytes that holds no
// NUL.
func (r *Reader) Text(minBytes, maxBytes int) (string, bool) {
	if !r.is('"', "a string") {
		return "", false
	}
	token, ok := r.token()
	if !ok {
		return "", false
	}
	text := token.String()
	switch {
	case len(text) < minBytes:
		r.note(OutOfRange, "must not be empty")
	case len(text) > maxBytes:
		r.note(OutOfRange, "must have at most %d bytes, not %d", maxBytes, len(text))
	case strings.IndexByte(text, 0) >= 0:
		r.note(InvalidText, "must not contain a NUL byte")
	default:
		return text, true
	}
	return "", false
}

// Int reads a whole number from least to most. A fraction of zeros is accepted,
// because some encoders write 2725.0 for 2725; any other fraction, and 1e3, is a
// fault.
func (r *Reader) Int(least, most int64) (int64, bool) {
	if !r.is('0', "a number") {
		return 0, false
	}
	value, ok := r.value()
	if !ok {
		return 0, false
	}
	whole, fraction, _ := strings.Cut(string(value), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" || n < least || n > most {
		r.note(OutOfRange, "must be a whole number from %d to %d", least, most)
		return 0, false
	}
	return n, true
}

// Bool reads true or false.
func (r *Reader) Bool() (value, ok bool) {
	if r.err != nil {
		return false, false
	}
	kind := r.dec.PeekKind()
	if kind != 't' && kind != 'f' {
		return false, r.is('t', "true or false")
	}
	token, ok := r.token()
	return ok && token.Bool(), ok
}

// Time reads a moment as RFC 3339 has it, as microseconds in UTC.
func (r *Reader) Time() (time.Time, bool) {
	if !r.is('"', `a time such as "2026-01-31T12:00:00Z"`) {
		return time.Time{}, false
	}
	token, ok := r.token()
	if !ok {
		return time.Time{}, false
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(token.String())); err != nil {
		r.note(InvalidText, `must be a time such as "2026-01-31T12:00:00Z"`)
		return time.Time{}, false
	}
	return t.UTC().Truncate(time.Microsecond), true
}

// Null reads a null, if one is next.
func (r *Reader) Null() bool {
	if r.err != nil || r.dec.PeekKind() != 'n' {
		return false
	}
	_, ok := r.token()
	return ok
}

// NextIsArray reports whether the next value is an array. It reads nothing.
func (r *Reader) NextIsArray() bool { return r.err == nil && r.dec.PeekKind() == '[' }

// Pointer names the value read last.
func (r *Reader) Pointer() string { return string(r.dec.StackPointer()) }

// Skip passes over the next value, whatever it is.
func (r *Reader) Skip() {
	if r.err == nil {
		r.skip(0)
	}
}

// Stop ends the reading; Finish returns err.
func (r *Reader) Stop(err error) {
	if r.err == nil {
		r.err = err
	}
}

// open reads the beginning of an object or array.
func (r *Reader) open(kind jsontext.Kind, want string) bool {
	if !r.is(kind, want) {
		return false
	}
	_, ok := r.token()
	return ok
}

// is reports whether the next value is of the kind. Otherwise it notes the
// fault and skips the value.
func (r *Reader) is(kind jsontext.Kind, want string) bool {
	if r.err != nil {
		return false
	}
	got := r.dec.PeekKind()
	if got == kind {
		return true
	}
	value, ok := r.skip(got)
	if !ok {
		return false
	}
	switch {
	case kind == '"' && got == '0' && len(value) <= 40:
		r.note(WrongType, `must be %s: write "%s", not %s`, want, value, value)
	case kind == '0' && got == '"':
		r.note(WrongType, "must be %s, without quotes", want)
	default:
		r.note(WrongType, "must be %s, not %s", want, describe(got))
	}
	return false
}

// skip passes over the next value; it returns the text of a number.
func (r *Reader) skip(kind jsontext.Kind) (jsontext.Value, bool) {
	if kind == '0' {
		return r.value()
	}
	if err := r.dec.SkipValue(); err != nil {
		r.fail(err)
		return nil, false
	}
	return nil, true
}

func (r *Reader) token() (jsontext.Token, bool) {
	if r.err != nil {
		return jsontext.Token{}, false
	}
	token, err := r.dec.ReadToken()
	if err != nil {
		r.fail(err)
		return jsontext.Token{}, false
	}
	return token, true
}

func (r *Reader) value() (jsontext.Value, bool) {
	value, err := r.dec.ReadValue()
	if err != nil {
		r.fail(err)
		return nil, false
	}
	return value, true
}
