package web

import (
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode"
)

// markedName writes an item's name so that a reader sees every character and
// copies exactly the bytes that it has: marks for what is invisible come from
// the style sheet, not from the text.
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
			text = "&#13;" // a parser turns the bare byte into a newline
		}
		fmt.Fprintf(&b, `<span class="ws" data-mark="%s" title="%s">%s</span>`, mark, title, text)
	}
	b.WriteString(`</bdi>`)
	return template.HTML(b.String()) //nolint:gosec // everything of the name's is escaped above
}

// markOf returns what stands for an invisible character, and its name; both
// are empty for what can be seen. A single space between words needs no mark.
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
