package feed

import (
	"strings"
	"unicode/utf8"

	"assay/internal/catalog"
)

// Named returns the name of a rejected row for a sink. A valid name stays whole, so that
// the sink keeps the previous price of that item.
func Named(b []byte) string {
	if len(b) <= catalog.MaxName && utf8.Valid(b) {
		return string(b)
	}
	return Clip(b)
}

// Clip makes text from outside printable: short and valid UTF-8.
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
