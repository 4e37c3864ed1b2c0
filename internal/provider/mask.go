package provider

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maskText replaces each secret.
const maskText = "***"

// minSecretPart is the length of the shortest secret prefix to mask at the end of a text. A
// prefix can remain there when a text is truncated within a secret.
const minSecretPart = 4

// masker removes secrets from logs and errors. It also finds secrets in other encodings:
// escaped for URLs, HTML or JSON, in hexadecimal or in base64. Escapes may be nested or
// partial, and letter case does not matter.
type masker struct {
	forms []string // forms to search for, folded
}

func newMasker(secrets []string) *masker {
	m := &masker{}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		m.add(s)
		// mask unescapes the text before it searches. Unescaping also changes a secret that
		// itself looks like an escape.
		for t, more := track(s).unescape(); more; t, more = t.unescape() {
			m.addLong(t.text)
		}
		for _, spelt := range spellings(s) {
			m.addLong(hex.EncodeToString([]byte(spelt)))
			for before := range 3 {
				m.addLong(base64Within(spelt, before))
			}
		}
	}
	return m
}

// spellings returns a secret in its common encodings.
func spellings(s string) []string {
	quoted, _ := jsontext.AppendQuote(nil, s) // invalid UTF-8 is replaced
	return []string{
		s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s),
		string(quoted[1 : len(quoted)-1]),
	}
}

// base64Within returns the base64 digits of s that do not depend on neighbouring bytes. The
// parameter before is the number of preceding bytes, modulo 3.
func base64Within(s string, before int) string {
	digits := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:before] + s))
	from, to := (8*before+5)/6, 8*(before+len(s))/6
	return digits[from:max(from, to)]
}

// addLong adds a form if it is long enough to identify a secret.
func (m *masker) addLong(form string) {
	if len(form) >= minSecretPart {
		m.add(form)
	}
}

func (m *masker) add(form string) {
	if form = fold(form); !slices.Contains(m.forms, form) {
		m.forms = append(m.forms, form)
	}
}

// fold maps equivalent spellings to one form. It unifies letter case, base64 alphabets and
// escaped spaces.
func fold(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch {
		case 'A' <= c && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c == ' ', c == '-':
			b[i] = '+'
		case c == '_':
			b[i] = '/'
		}
	}
	return string(b)
}

// mask replaces secrets in s, including a truncated secret at the end of s.
func (m *masker) mask(s string) string {
	if len(m.forms) == 0 {
		return s
	}
	var found []stretch
	t, more := track(s), true
	for n := 0; more && n < maxUnescape; n++ {
		found = m.find(found, t)
		t, more = t.unescape()
	}
	return replace(s, found)
}

// stretch is a byte range of a text.
type stretch struct{ from, to int }

// find appends the positions of secrets in the original text of t.
func (m *masker) find(found []stretch, t tracked) []stretch {
	text := fold(t.text)
	whole := text[:len(text)-len(halfEscape.FindString(text))]
	for _, form := range m.forms {
		for at := 0; ; at++ {
			next := strings.Index(text[at:], form)
			if next < 0 {
				break
			}
			at += next
			found = append(found, stretch{t.from[at], t.to[at+len(form)-1]})
		}
		for _, end := range []string{text, whole} {
			if n := beginsAtEnd(end, form); n > 0 {
				found = append(found, stretch{t.from[len(end)-n], t.to[len(text)-1]})
			}
		}
	}
	return found
}

// beginsAtEnd returns the length of the longest prefix of form at the end of text. It returns
// 0 for a prefix shorter than minSecretPart.
func beginsAtEnd(text, form string) int {
	for n := min(len(form)-1, len(text)); n >= minSecretPart; n-- {
		if strings.HasSuffix(text, form[:n]) {
			return n
		}
	}
	return 0
}

// replace masks the ranges found in s.
func replace(s string, found []stretch) string {
	if len(found) == 0 {
		return s
	}
	slices.SortFunc(found, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	done := 0
	for i := 0; i < len(found); {
		one := found[i]
		for i++; i < len(found) && found[i].from < one.to; i++ {
			one.to = max(one.to, found[i].to)
		}
		out.WriteString(s[done:one.from] + maskText)
		done = one.to
	}
	return out.String() + s[done:]
}

// maxPath is the maximum length of a recorded path, in bytes.
const maxPath = 512

// path returns the path of a URL with secrets masked. It adds the sorted keys of the query
// without their values.
func (m *masker) path(u *url.URL) string {
	return printable(m.fullPath(u), maxPath)
}

func (m *masker) fullPath(u *url.URL) string {
	masked := url.URL{Path: m.mask(u.Path)}
	s := strings.ReplaceAll(masked.EscapedPath(), "%2A", "*")
	if s == "" {
		s = "/"
	}
	// Mask before parsing, because an unescaped secret may contain query separators.
	query, _ := url.ParseQuery(m.mask(u.RawQuery)) // ParseQuery drops invalid parts
	keys := make([]string, 0, len(query))
	for key := range query {
		keys = append(keys, url.QueryEscape(m.mask(key)))
	}
	if len(keys) == 0 {
		return s
	}
	slices.Sort(keys)
	return s + "?" + strings.ReplaceAll(strings.Join(keys, "&"), "%2A", "*")
}

// printable returns s on one line, with at most limit bytes. It replaces unprintable
// characters with dots or spaces.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '.'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '.'
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
