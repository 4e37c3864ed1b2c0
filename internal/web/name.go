package web

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode"
)

// markedName formats an item's name with every character visible. The style sheet adds the
// marks for invisible characters. Therefore copied text contains exactly the bytes of the
// name.
func markedName(name string) template.HTML {
	runes := []rune(name)
	var b strings.Builder
	b.WriteString(`<bdi class="name">`)
	for i, r := range runes {
		mark, title := markOf(runes, i)
		if mark == "" {
			b.WriteString(html.EscapeString(string(r)))
			continue
		}
		text := html.EscapeString(string(r))
		if r == '\r' {
			text = "&#13;" // HTML parsers turn the raw byte into a newline
		}
		fmt.Fprintf(&b, `<span class="ws" data-mark="%s" title="%s">%s</span>`, mark, title, text)
	}
	b.WriteString(`</bdi>`)
	return template.HTML(b.String()) //nolint:gosec // all parts of the name are escaped above
}

// markOf returns the mark and title of an invisible character, or empty texts for a visible
// one. A single space between words needs no mark.
func markOf(runes []rune, i int) (mark, title string) {
	r := runes[i]
	switch {
	case r == '\n':
		return "↵", "newline"
	case r == '\r':
		return "␍", "carriage return"
	case r == '\t':
		return "→", "tab"
	case r == ' ':
		return spaceMark(runes, i)
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.IsSpace(r):
		code := fmt.Sprintf("U+%04X", r)
		return code, "invisible character " + code
	}
	return "", ""
}

func spaceMark(runes []rune, i int) (mark, title string) {
	switch {
	case i == 0:
		return "·", "leading space"
	case i == len(runes)-1:
		return "·", "trailing space"
	case runes[i-1] == ' ' || runes[i+1] == ' ':
		return "·", "one of several spaces"
	}
	return "", ""
}
