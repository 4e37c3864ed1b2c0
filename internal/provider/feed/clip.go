package feed

import (
	"strings"
	"unicode/utf8"

	"assay/internal/catalog"
)

// RowName returns the name of a rejected row for a sink. It keeps a valid name whole, because
// the sink uses it to find the previous price of the item.
func RowName(b []byte) string {
	if len(b) <= catalog.MaxName && utf8.Valid(b) {
		return string(b)
	}
	return Clip(b)
}

// Clip returns external text as short, valid UTF-8.
func Clip(b []byte) string {
	const limit = 80
	if len(b) > limit {
		cut := limit
		for cut > limit-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		return strings.ToValidUTF8(string(b[:cut]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
