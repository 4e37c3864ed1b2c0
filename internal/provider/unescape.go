package provider

import (
	"encoding/hex"
	"html"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxUnescape limits how often a text is unescaped. Text is rarely escaped more than a few
// times.
const maxUnescape = 24

// tracked is an unescaped text. It maps each byte to a range of the original text.
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

// escapeKinds matches the escapes of URLs, JSON strings and HTML. The last kind is HTML
// escapes without a semicolon, which browsers accept. Each kind is removed only when no
// earlier kind is left, because the end of an escape may itself be escaped.
var escapeKinds = [...]*regexp.Regexp{
	regexp.MustCompile(`(?i)%[0-9a-f]{2}|%u[0-9a-f]{4}`),
	regexp.MustCompile(`(?i)(?:\\u[0-9a-f]{4})+|\\x[0-9a-f]{2}|\\[^ux]`),
	regexp.MustCompile(`(?i)&#[0-9]{1,7};|&#x[0-9a-f]{1,6};|&[a-z][a-z0-9]{1,31};`),
	regexp.MustCompile(`(?i)&#[0-9]{1,7}|&#x[0-9a-f]{1,6}|&[a-z][a-z0-9]{1,31}`),
}

// halfEscape matches an escape, possibly nested, that is truncated by the end of the text.
var halfEscape = regexp.MustCompile(`(?i)(?:%u?[0-9a-f]{0,3}|&#?[0-9a-z]{0,8}|\\[ux]?[0-9a-f]{0,3})+$`)

// unescape removes one level of escapes of one kind. It returns false if there are no escapes.
func (t tracked) unescape() (tracked, bool) {
	if !strings.ContainsAny(t.text, `%&\`) {
		return t, false
	}
	for i, kind := range escapeKinds {
		found := kind.FindAllStringIndex(t.text, -1)
		// At the end of the text, an escape without a semicolon may be truncated.
		if last := len(found) - 1; i == len(escapeKinds)-1 && last >= 0 && found[last][1] == len(t.text) {
			found = found[:last]
		}
		if out := t.without(found); out.text != t.text {
			return out, true
		}
	}
	return t, false
}

// without replaces the escapes at found with the characters that they represent.
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

// unescaped returns the text of one escape, or of a sequence of JSON escapes.
func unescaped(s string) string {
	switch kind := strings.ToLower(s[:2]); {
	case kind[0] == '&':
		return html.UnescapeString(strings.ToLower(s)) // fold makes the letter case irrelevant
	case kind == "%u":
		return unquoted(`\u` + s[2:])
	case kind == `\u`:
		return unquoted(strings.ToLower(s))
	case kind[0] == '%', kind == `\x`:
		b, err := hex.DecodeString(s[len(s)-2:])
		if err != nil {
			return s // cannot happen: the digits are hexadecimal
		}
		return string(b)
	default:
		return s[1:]
	}
}

// unquoted returns the text of JSON escapes.
func unquoted(escapes string) string {
	out, _ := jsontext.AppendUnquote(nil, `"`+escapes+`"`) // half of a surrogate pair is replaced
	return string(out)
}
