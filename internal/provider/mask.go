package provider

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maskText stands where a secret stood.
const maskText = "***"

// minSecretPart is the shortest beginning of a secret that is masked at the end
// of a text, where the text may have been cut within it.
const minSecretPart = 4

// masker keeps secrets out of what is shown.
type masker struct {
	forms    []string // every spelling of every secret, longest first
	replacer *strings.Replacer
}

func newMasker(secrets []string) *masker {
	m := &masker{}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			if !slices.Contains(m.forms, form) {
				m.forms = append(m.forms, form)
			}
		}
	}
	// The longest first, so that a secret that contains another goes whole.
	slices.SortFunc(m.forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(m.forms))
	for _, form := range m.forms {
		pairs = append(pairs, form, maskText)
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

// mask replaces secrets within s, and the beginning of one at its end.
func (m *masker) mask(s string) string {
	s = m.replacer.Replace(s)
	for _, form := range m.forms {
		for n := min(len(form)-1, len(s)); n >= minSecretPart; n-- {
			if strings.HasSuffix(s, form[:n]) {
				return s[:len(s)-n] + maskText
			}
		}
	}
	return s
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
	query := u.Query()
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
