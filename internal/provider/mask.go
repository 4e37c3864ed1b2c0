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

// maskText stands where a secret stood.
const maskText = "***"

// minSecretPart is the shortest beginning of a secret that is masked at the end
// of a text, where the text may have been cut within it.
const minSecretPart = 4

// masker keeps secrets out of what is shown, however a provider that quotes what
// it was sent may spell them: escaped for URLs, HTML or JSON, several times and
// in part, in other letter case, in hexadecimal or in base64.
type masker struct {
	forms []string // folded
}

func newMasker(secrets []string) *masker {
	m := &masker{}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		m.add(s)
		// Where a text is unescaped, what looks so in a secret is, too.
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

// spellings returns a secret as it is and as the usual encoders write it.
func spellings(s string) []string {
	quoted, _ := jsontext.AppendQuote(nil, s) // what is no UTF-8 is replaced
	return []string{
		s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s),
		string(quoted[1 : len(quoted)-1]),
	}
}

// base64Within returns what base64 makes of s where so many bytes (modulo 3) and
// others after them surround it: the digits that are all of s.
func base64Within(s string, before int) string {
	digits := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:before] + s))
	from, to := (8*before+5)/6, 8*(before+len(s))/6
	return digits[from:max(from, to)]
}

// addLong adds a form unless it is too short to identify a secret.
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

// fold makes alike what stands for the same: letters of both cases, and what
// kinds of base64 and of escaping spaces differ in.
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

// mask replaces secrets within s, and the beginning of one at its end.
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

// stretch is a part of a text.
type stretch struct{ from, to int }

// find adds where secrets stand in t's original.
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

// beginsAtEnd returns how much of a form text ends with, if that is long enough to matter.
func beginsAtEnd(text, form string) int {
	for n := min(len(form)-1, len(text)); n >= minSecretPart; n-- {
		if strings.HasSuffix(text, form[:n]) {
			return n
		}
	}
	return 0
}

// replace masks stretches of s.
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

// maxPath bounds what is kept of a path, in bytes.
const maxPath = 512

// path renders where a request goes: its path with secrets masked and the keys
// of its query, sorted and without their values.
func (m *masker) path(u *url.URL) string {
	return printable(m.fullPath(u), maxPath)
}

func (m *masker) fullPath(u *url.URL) string {
	masked := url.URL{Path: m.mask(u.Path)}
	s := strings.ReplaceAll(masked.EscapedPath(), "%2A", "*")
	if s == "" {
		s = "/"
	}
	// Whole, since an unescaped key may hold characters that divide a query.
	query, _ := url.ParseQuery(m.mask(u.RawQuery)) // of what cannot be read there is no key
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

// printable makes s safe to show in one line: what cannot be printed becomes a
// dot or a space, and no more than limit bytes remain.
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
