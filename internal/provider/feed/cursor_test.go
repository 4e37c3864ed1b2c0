package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"assay/internal/randtest"
)

func TestCursor_AgreesWithEncodingJSON(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(3000, 300_000) {
		doc := anyObject(r, 0)
		var got []string
		walk([]byte(doc), &got)
		if want := tokens(t, doc); !slices.Equal(got, want) {
			t.Fatalf("%s\n got %q\nwant %q", doc, got, want)
		}
	}
}

// walk appends the tokens of a value to out, using Cursors.
func walk(value []byte, out *[]string) {
	switch value[0] {
	case '{':
		*out = append(*out, "{")
		for c := NewCursor(value); ; {
			name, member, ok := c.Member()
			if !ok {
				break
			}
			walk(name, out)
			walk(member, out)
		}
		*out = append(*out, "}")
	case '[':
		*out = append(*out, "[")
		for c := NewCursor(value); ; {
			element, ok := c.Element()
			if !ok {
				break
			}
			walk(element, out)
		}
		*out = append(*out, "]")
	case '"':
		scratch := []byte("kept")
		text, after := AppendUnquote(scratch, value)
		if string(after[:len(scratch)]) != "kept" || !bytes.Equal(text, Unquote(value)) {
			*out = append(*out, "scratch overwritten")
		}
		*out = append(*out, "text "+string(text))
	default:
		*out = append(*out, string(value))
	}
}

// tokens returns the tokens of a document, using encoding/json.
func tokens(t *testing.T, doc string) (out []string) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(doc)); ; {
		dec.UseNumber()
		token, err := dec.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("%s: got error %v, want none", doc, err)
		}
		switch v := token.(type) {
		case string:
			out = append(out, "text "+v)
		case nil:
			out = append(out, "null")
		default:
			out = append(out, fmt.Sprint(v))
		}
	}
}

// anyObject returns a random object in varied JSON notation.
func anyObject(r *rand.Rand, depth int) string {
	var b strings.Builder
	for i := range r.IntN(6) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(blank(r) + anyText(r) + blank(r) + ":" + blank(r) + anyValue(r, depth+1) + blank(r))
	}
	return "{" + b.String() + blank(r) + "}"
}

func anyValue(r *rand.Rand, depth int) string {
	kinds := 8
	if depth > 4 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return []string{"true", "false", "null"}[r.IntN(3)]
	case 1, 2:
		return []string{"0", "-0", "12.345", "1e-7", "-1E+2", "98765432109876543210"}[r.IntN(6)]
	case 3, 4:
		return anyText(r)
	case 5, 6:
		return anyObject(r, depth)
	default:
		elements := make([]string, r.IntN(4))
		for i := range elements {
			elements[i] = blank(r) + anyValue(r, depth+1) + blank(r)
		}
		if len(elements) == 0 {
			return "[" + blank(r) + "]"
		}
		return "[" + strings.Join(elements, ",") + "]"
	}
}

// anyText returns a JSON string with quotes and backslashes. A careless parser finds the end
// of the string too early or too late.
func anyText(r *rand.Rand) string {
	pieces := []string{
		`\"`, `\\`, `\\\\`, `\\\"`, `{`, `}`, `[`, `]`, `:`, `,`, `\u2605`, `\ud83d\ude00`, `★ `, `壱`, `\n`, `\/`, `a`, ` `, `\u0022`, `\u0000`, `'`, `\t`,
	}
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return `"` + b.String() + `"`
}

func blank(r *rand.Rand) string {
	if r.IntN(3) > 0 {
		return ""
	}
	return strings.Repeat([]string{" ", "\n", "\t", "\r"}[r.IntN(4)], 1+r.IntN(2))
}
