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
	name, ok = c.element()
	if !ok {
		return nil, nil, false
	}
	value, _ = c.element()
	return name, value, true
}

// element returns the next value; false at the end.
func (c *cursor) element() ([]byte, bool) {
	for ; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case ' ', '\t', '\r', '\n', ',', ':':
		case '}', ']':
			return nil, false
		default:
			start := c.at
			c.at = valueEnd(c.text, start)
			return c.text[start:c.at:c.at], true
		}
	}
	return nil, false
}

// valueEnd returns where the value that starts at i ends.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
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
