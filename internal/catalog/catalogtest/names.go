// Package catalogtest provides items and names for tests.
package catalogtest

import (
	"strings"

	"assay/internal/catalog"
)

// Names returns real and possible names that are easy to confuse or to handle wrongly.
// Some differ only in case, spaces or control characters. Others look alike, contain
// syntax of SQL, HTML, JSON or URLs, or have the maximum length.
func Names() []string {
	return []string{
		"Sticker | Device", "Sticker | device", "STICKER | DEVICE",
		"Two  spaces", "Two spaces", "Trailing ", "Trailing  ", "Trailing", " Leading", "\tTab",
		"Line\nbreak", "Line\r\nbreak", "Line\u2028separator", "Control\x01\x1f\x7f",
		"壱", "弐", "é", "e\u0301", "★ StatTrak™ Karambit", "\ufeffBOM", "\U0001F600",
		"%2F", "/", "%", "_", "a%b", "a_b", "\\", "&lt;", "<", "&amp;lt;", "'", "''", `"`, `\"`, "--", "; DROP TABLE item",
		"#1", "$1", "?", "?1", ":name", "@name", "null", "NULL", "0", "00", "1e3", "true", "[]", `{"a":1}`, "\u0080",
		strings.Repeat("n", catalog.MaxName), strings.Repeat("n", catalog.MaxName-1), strings.Repeat("★", 170) + "ab",
	}
}
