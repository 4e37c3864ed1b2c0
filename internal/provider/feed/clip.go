package feed

import (
	"strings"
	"unicode/utf8"
)

// Clip makes a text from outside fit to be shown: short, and valid UTF-8.
func Clip(b []byte) string {
	const most = 80
	if len(b) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		return strings.ToValidUTF8(string(b[:cut]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
