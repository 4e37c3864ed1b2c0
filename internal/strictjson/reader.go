// Package strictjson reads untrusted JSON and collects all errors in it. Member names are
// compared byte for byte. Duplicate or unknown members, invalid UTF-8 and wrong types are
// errors. The package reads a stream. Values that the caller does not store use no
// memory.
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
	// defaultMaxFields limits the errors that a Reader from NewReader lists. The Reader only
	// counts further errors.
	defaultMaxFields = 20
	// maxEcho limits how many bytes of the input an error message repeats.
	maxEcho = 200
	// maxValue limits the bytes of a single string or number, because the decoder keeps
	// it in memory. It must exceed the longest valid Text with all characters escaped.
	maxValue = 64 << 10
)

// Reader reads one JSON value. If a value has the wrong type, a method records an error,
// skips the value and returns false. After malformed JSON or Stop, all methods do nothing
// and return false. Finish then returns the reason.
type Reader struct {
	dec        *jsontext.Decoder
	fields     []fault.Field
	maxFields  int  // limit of fields
	more       int  // errors beyond that limit
	duplicates bool // report a duplicate member and continue
	err        error
}

// NewReader returns a Reader for the JSON in r. A string or number of more than 64 KiB
// ends the reading with a fault of kind TooLarge.
func NewReader(r io.Reader) *Reader {
	return newReader(r, Reader{maxFields: defaultMaxFields})
}

// NewDocumentReader returns a Reader for documents that people edit. It lists up to n
// errors and continues after a duplicate member.
func NewDocumentReader(r io.Reader, n int) *Reader {
	return newReader(r, Reader{maxFields: n, duplicates: true})
}

func newReader(from io.Reader, r Reader) *Reader {
	in := &bounded{from: from}
	in.dec = jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(r.duplicates))
	r.dec = in.dec
	return &r
}

// bounded limits the size of a single value. It relies on the decoder, which reads more
// data only to complete the current value.
type bounded struct {
	from io.Reader
	dec  *jsontext.Decoder
	read int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if at := b.dec.InputOffset(); b.read-at > maxValue {
		return 0, fault.New(fault.TooLarge, "value_too_large",
			"The value at byte %d of the body is longer than %d KiB.", at, maxValue>>10)
	}
	n, err := b.from.Read(p)
	b.read += int64(n)
	return n, err
}

// Object reads an object and calls member for each of its members. The function member
// reads the value and returns true. For an unknown name it reads nothing and returns
// false. The known names are used to suggest a correct spelling.
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
			r.note(DuplicateMember, duplicateDetail)
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

// Array reads an array and calls element with the index of each element. The function
// element reads the value.
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

// Text reads a string of minBytes to maxBytes bytes without NUL bytes.
func (r *Reader) Text(minBytes, maxBytes int) (string, bool) {
	if !r.expect('"', "a string") {
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

// Int reads an integer from least to most. A fraction of zeros is valid, because some
// encoders write 2725.0 for 2725. Other fractions and exponents such as 1e3 are errors.
func (r *Reader) Int(least, most int64) (int64, bool) {
	if !r.expect('0', "a number") {
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

// Number reads a number and returns its text.
func (r *Reader) Number() (string, bool) {
	if !r.expect('0', "a number") {
		return "", false
	}
	value, ok := r.value()
	return string(value), ok
}

// Bool reads true or false.
func (r *Reader) Bool() (value, ok bool) {
	if r.err != nil {
		return false, false
	}
	kind := r.dec.PeekKind()
	if kind != 't' && kind != 'f' {
		return false, r.expect('t', "true or false")
	}
	token, ok := r.token()
	return ok && token.Bool(), ok
}

// Time reads an RFC 3339 time. The result is in UTC and truncated to microseconds.
func (r *Reader) Time() (time.Time, bool) {
	if !r.expect('"', `a time such as "2026-01-31T12:00:00Z"`) {
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

// Null reads a null if it is the next value, and reports whether it did.
func (r *Reader) Null() bool {
	if r.err != nil || r.dec.PeekKind() != 'n' {
		return false
	}
	_, ok := r.token()
	return ok
}

// NextIsArray reports whether the next value is an array. It reads nothing.
func (r *Reader) NextIsArray() bool { return r.err == nil && r.dec.PeekKind() == '[' }

// Pointer returns the JSON pointer of the value that was read last.
func (r *Reader) Pointer() string { return string(r.dec.StackPointer()) }

// Skip skips the next value.
func (r *Reader) Skip() {
	if r.err == nil {
		r.skip(0)
	}
}

// Stop ends the reading. Finish then returns err.
func (r *Reader) Stop(err error) {
	if r.err == nil {
		r.err = err
	}
}

// open reads the start of an object or array.
func (r *Reader) open(kind jsontext.Kind, want string) bool {
	if !r.expect(kind, want) {
		return false
	}
	_, ok := r.token()
	return ok
}

// expect reports whether the next value has the given kind. Otherwise it records an error and
// skips the value.
func (r *Reader) expect(kind jsontext.Kind, want string) bool {
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

// skip skips the next value. It returns the text of a number.
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
