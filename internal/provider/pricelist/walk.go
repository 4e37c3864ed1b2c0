package pricelist

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor steps through the members of one JSON object or the elements of one
// array. The text must be valid JSON, as jsontext returns it: a cursor checks
// nothing.
type cursor struct {
	text []byte
	at   int
}

// newCursor starts within value, an object or an array.
func newCursor(value []byte) cursor { return cursor{text: value, at: 1} }

// member returns the next name, quoted, and its value; false at the end.
func (c *cursor) member() (name, value []byte, ok bool) {
	b, i := c.text, c.skip(c.at)
	if b[i] == '}' {
		return nil, nil, false
	}
	colon := stringEnd(b, i)
	from := c.skip(colon)
	c.at = valueEnd(b, from)
	return b[i:colon], b[from:c.at:c.at], true
}

// element returns the next value; false at the end.
func (c *cursor) element() ([]byte, bool) {
	i := c.skip(c.at)
	if c.text[i] == ']' {
		return nil, false
	}
	c.at = valueEnd(c.text, i)
	return c.text[i:c.at:c.at], true
}

// skip returns where what stands between values ends.
func (c *cursor) skip(i int) int {
	for b := c.text; b[i] <= ' ' || b[i] == ',' || b[i] == ':'; {
		i++
	}
	return i
}

// valueEnd returns where the value that starts at i ends.
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
			slashes++ // ends at the opening quote at the latest
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

// unquote returns what a JSON string stands for.
func unquote(quoted []byte) []byte {
	if !escaped(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	// The text is known to be valid, so that this cannot fail.
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return out
}

func escaped(quoted []byte) bool { return bytes.IndexByte(quoted, '\\') >= 0 }
