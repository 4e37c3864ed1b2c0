package feed

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Cursor steps through the members of a JSON object or the elements of a JSON array. The text
// must be valid JSON, such as a value that jsontext returns. A Cursor does not validate it.
type Cursor struct {
	text []byte
	at   int
}

// NewCursor returns a Cursor inside value, which must be an object or an array.
func NewCursor(value []byte) Cursor { return Cursor{text: value, at: 1} }

// Open steps into the next element if it begins with kind, which is '{' or '['. At the end of
// that element, Member or Element steps out of it.
func (c *Cursor) Open(kind byte) bool {
	i := c.skip(c.at)
	if c.text[i] != kind {
		return false
	}
	c.at = i + 1
	return true
}

// Member returns the next name, still quoted, and its value. At the end of the object it steps
// out and returns false.
func (c *Cursor) Member() (name, value []byte, ok bool) {
	b, i := c.text, c.skip(c.at)
	if b[i] == '}' {
		c.at = i + 1
		return nil, nil, false
	}
	colon := stringEnd(b, i)
	from := c.skip(colon)
	c.at = valueEnd(b, from)
	return b[i:colon], b[from:c.at:c.at], true
}

// Element returns the next value. At the end of the array it steps out and returns false.
func (c *Cursor) Element() ([]byte, bool) {
	i := c.skip(c.at)
	if c.text[i] == ']' {
		c.at = i + 1
		return nil, false
	}
	c.at = valueEnd(c.text, i)
	return c.text[i:c.at:c.at], true
}

// skip returns the position of the next value after white space and separators.
func (c *Cursor) skip(i int) int {
	for b := c.text; b[i] <= ' ' || b[i] == ',' || b[i] == ':'; {
		i++
	}
	return i
}

// valueEnd returns the end of the value that starts at i.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	for i++; i < len(b); i++ {
		if c := b[i]; c <= ' ' || c == ',' || c == '}' || c == ']' {
			break
		}
	}
	return i
}

func stringEnd(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++ // stops at the opening quote at the latest
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

func nestedEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// Unquote returns the text of a JSON string.
func Unquote(quoted []byte) []byte {
	text, _ := AppendUnquote(nil, quoted)
	return text
}

// AppendUnquote returns the text of a JSON string. If the string has no escapes, the text is a
// part of quoted. Otherwise AppendUnquote appends the text to scratch. It returns the extended
// scratch as after. Texts returned earlier stay valid.
func AppendUnquote(scratch, quoted []byte) (text, after []byte) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], scratch
	}
	n := len(scratch)
	scratch, _ = jsontext.AppendUnquote(scratch, quoted) // cannot fail: quoted is valid
	return scratch[n:], scratch
}
