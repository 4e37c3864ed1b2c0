package provider

import (
	"encoding/hex"
	"html"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxUnescape bounds how often a text is unescaped, each kind of escape by
// itself. A text is rarely escaped more than a few times.
const maxUnescape = 24

// tracked is a text with, for each of its bytes, the stretch of the original
// text that it stands for.
type tracked struct {
	text string
	from []int
	to   []int // exclusive
}

func track(s string) tracked {
	t := tracked{text: s, from: make([]int, len(s)), to: make([]int, len(s))}
	for i := range len(s) {
		t.from[i], t.to[i] = i, i+1
	}
	return t
}

// escapeKinds are the escapes of URLs, of strings of JSON and its like, and of
// HTML; at last those of HTML that lack their end, which browsers forgive. Each
// is looked for where none of those before it are left, since the end of one may
// be escaped in another way.
var escapeKinds = [...]*regexp.Regexp{
	regexp.MustCompile(`(?i)%[0-9a-f]{2}|%u[0-9a-f]{4}`),
	regexp.MustCompile(`(?i)(?:\\u[0-9a-f]{4})+|\\x[0-9a-f]{2}|\\[^ux]`),
	regexp.MustCompile(`(?i)&#[0-9]{1,7};|&#x[0-9a-f]{1,6};|&[a-z][a-z0-9]{1,31};`),
	regexp.MustCompile(`(?i)&#[0-9]{1,7}|&#x[0-9a-f]{1,6}|&[a-z][a-z0-9]{1,31}`),
}

// halfEscape is an escape, maybe of an escape, at the end of a text that was cut
// within it.
var halfEscape = regexp.MustCompile(`(?i)(?:%u?[0-9a-f]{0,3}|&#?[0-9a-z]{0,8}|\\[ux]?[0-9a-f]{0,3})+$`)

// unescape unescapes once what is escaped in t, in one of the ways that there
// are. It returns false if nothing is.
func (t tracked) unescape() (tracked, bool) {
	if !strings.ContainsAny(t.text, `%&\`) {
		return t, false
	}
	for i, kind := range escapeKinds {
		found := kind.FindAllStringIndex(t.text, -1)
		// One without an end that the text ends with may have been cut.
		if last := len(found) - 1; i == len(escapeKinds)-1 && last >= 0 && found[last][1] == len(t.text) {
			found = found[:last]
		}
		if out := t.without(found); out.text != t.text {
			return out, true
		}
	}
	return t, false
}

// without replaces the escapes found in t with what they stand for.
func (t tracked) without(found [][]int) tracked {
	var out tracked
	var text strings.Builder
	at := 0
	for _, f := range found {
		text.WriteString(t.text[at:f[0]])
		out.from, out.to = append(out.from, t.from[at:f[0]]...), append(out.to, t.to[at:f[0]]...)
		plain := unescaped(t.text[f[0]:f[1]])
		text.WriteString(plain)
		for range len(plain) {
			out.from, out.to = append(out.from, t.from[f[0]]), append(out.to, t.to[f[1]-1])
		}
		at = f[1]
	}
	text.WriteString(t.text[at:])
	out.from, out.to = append(out.from, t.from[at:]...), append(out.to, t.to[at:]...)
	out.text = text.String()
	return out
}

// unescaped returns what one escape, or a row of those of JSON, stands for.
func unescaped(s string) string {
	switch kind := strings.ToLower(s[:2]); {
	case kind[0] == '&':
		return html.UnescapeString(strings.ToLower(s)) // in what letters it was does not matter: see fold
	case kind == "%u":
		return unquoted(`\u` + s[2:])
	case kind == `\u`:
		return unquoted(strings.ToLower(s))
	case kind[0] == '%', kind == `\x`:
		b, err := hex.DecodeString(s[len(s)-2:])
		if err != nil {
			return s // cannot be: they are hexadecimal digits
		}
		return string(b)
	default:
		return s[1:]
	}
}

// unquoted returns what escapes of JSON stand for.
func unquoted(escapes string) string {
	out, _ := jsontext.AppendUnquote(nil, `"`+escapes+`"`) // half a surrogate pair is replaced
	return string(out)
}
