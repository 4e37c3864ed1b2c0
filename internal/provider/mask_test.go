package provider

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"assay/internal/randtest"
)

func TestMask_HidesSecretInEveryEncoding(t *testing.T) {
	m := newMasker([]string{"s3cr3t/key+1", "s3cr3t", "", "longer-s3cr3t"})
	for in, want := range map[string]string{
		"":                             "",
		"nothing here":                 "nothing here",
		"key s3cr3t/key+1.":            "key ***.",
		"key s3cr3t%2Fkey%2B1.":        "key ***.",
		"key s3cr3t/key%2b1.":          "key ***.",
		"key s3cr3t/key&#43;1.":        "key ***.",
		"key s3cr3t&#x2f;KEY&plus;1.":  "key ***.",
		`key s3cr3t\/key\u002B1.`:      "key ***.",
		"key s3cr3t%252Fkey%252B1.":    "key ***.",
		"key czNjcjN0L2tleSsx.":        "key ***.",
		"key 7333637233742f6b65792b31": "key ***",
		"s3cr3t and longer-s3cr3t":     "*** and ***",
		"truncated: s3cr3t/ke":         "truncated: ***",
		"truncated: longer-s3":         "truncated: ***",
		"too short to identify: s3":    "too short to identify: s3",
	} {
		if got := m.mask(in); got != want {
			t.Errorf("mask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMask_PathOmitsQueryValues(t *testing.T) {
	m := newMasker([]string{"s3cr3t", "div&ided=key"})
	for in, want := range map[string]string{
		"http://h/x?key=div&ided=key&page=1":          "/x?key&page",
		"http://h":                                    "/",
		"http://h/v2/s3cr3t/items":                    "/v2/***/items",
		"http://h/v2/%733cr3t/items?b=1&a=2&a=3":      "/v2/***/items?a&b",
		"http://h/x?s3cr3t=1&api_key=s3cr3t":          "/x?***&api_key",
		"http://h/x?api_key=other#s3cr3t":             "/x?api_key",
		"http://h/AK-47%20%7C%20Redline/%E2%98%85":    "/AK-47%20%7C%20Redline/%E2%98%85",
		"http://user:s3cr3t@h/a\u202eb%0d%0aSet-Evil": "/a%E2%80%AEb%0D%0ASet-Evil",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.path(u); got != want {
			t.Errorf("path(%q) = %q, want %q", in, got, want)
		}
	}
	long, _ := url.Parse("http://h/" + strings.Repeat("x", 10_000))
	if got := len(m.path(long)); got > maxPath {
		t.Errorf("got a path of %d bytes, want at most %d", got, maxPath)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("canary-0123456789", "before ", " after")
	f.Add("a/b+c d&e", "http://h/", "?x=1")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		// Skip short secrets: the text around a masked secret could contain one.
		if len(secret) < 8 || strings.Contains(fold(before+after+maskText), fold(secret[:2])) || strings.Contains(secret, "*") {
			return
		}
		m := newMasker([]string{secret})
		for _, s := range spellings(secret) {
			if got := printable(m.mask(before+s+after), maxDetail); strings.Contains(got, s) || !utf8.ValidString(got) {
				t.Errorf("masked text: got %q, want valid UTF-8 without %q", got, s)
			}
		}
	})
}

// TestMask_HidesSecretsInNestedEncodings quotes random secrets in random combinations of
// encodings and truncates some of the texts.
func TestMask_HidesSecretsInNestedEncodings(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(3_000, 200_000) {
		secret := randomSecret(r)
		m := newMasker([]string{"another-secret", secret})
		spelt := secret
		switch r.IntN(6) {
		case 0:
			spelt = hex.EncodeToString([]byte(noise(r) + spelt + noise(r)))
		case 1, 2:
			e := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding}[r.IntN(4)]
			spelt = e.EncodeToString([]byte(noise(r) + spelt + noise(r)))
		}
		for range r.IntN(4) {
			spelt = escapers[r.IntN(len(escapers))](r, spelt)
		}
		text := "the key " + spelt + " is wrong"
		if r.IntN(4) == 0 {
			text = text[:r.IntN(len(text)+1)]
		}
		got := printable(m.mask(text), maxDetail)
		if shown := shows(got, secret); shown != "" {
			t.Fatalf("mask(%q) = %q, want no part of the secret %q, such as %q", text, got, secret, shown)
		}
		if !strings.HasPrefix(got, text[:min(len(text), 8)]) {
			t.Fatalf("mask(%q) = %q, want the same beginning", text, got)
		}
	}
}

// randomSecret returns a secret of 14 to 42 characters. It uses the alphabet of common API
// keys or other printable characters.
func randomSecret(r *rand.Rand) string {
	letters := []string{
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
		"abcdef0123456789",
		"abcDEF012+/&=\"<>'!?#@:;.,~$()[]{}|^ ",
	}[r.IntN(4)]
	b := make([]byte, 12+r.IntN(29))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return "k" + strings.TrimSpace(string(b)) + "z"
}

func noise(r *rand.Rand) string { return "user:{\"~}"[:r.IntN(9)] }

// escapers escape a text in whole or in part.
var escapers = []func(*rand.Rand, string) string{
	func(_ *rand.Rand, s string) string { return url.QueryEscape(s) },
	func(_ *rand.Rand, s string) string { return url.PathEscape(s) },
	func(_ *rand.Rand, s string) string { return strings.ToLower(url.QueryEscape(s)) },
	func(_ *rand.Rand, s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") },
	func(_ *rand.Rand, s string) string { return html.EscapeString(s) },
	func(_ *rand.Rand, s string) string { return strings.ToUpper(s) },
	func(_ *rand.Rand, s string) string {
		quoted, _ := json.Marshal(s)
		return strings.ReplaceAll(string(quoted), "/", `\/`)
	},
	some("%%%02X"), some("%%%02x"), some("&#%d;"), some("&#x%X;"), some("&#x%04x;"), some(`\u%04x`), some(`\u%04X`), some(`\x%02x`),
}

// some returns an escaper for all special characters and some letters and digits.
func some(format string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, s string) string {
		share := r.IntN(3)
		var out strings.Builder
		for i := range len(s) {
			if plain := unicode.IsLetter(rune(s[i])) || unicode.IsDigit(rune(s[i])); plain && r.IntN(4) >= share {
				out.WriteByte(s[i])
				continue
			}
			fmt.Fprintf(&out, format, s[i])
		}
		return out.String()
	}
}

// shows returns a part of the secret that common decoders can find in text. It returns "" if
// they find none.
func shows(text, secret string) string {
	part := strings.ToLower(secret[:10])
	for range 6 {
		lower := strings.ToLower(text)
		for _, form := range append(spellings(part), hex.EncodeToString([]byte(secret[:10])),
			base64.StdEncoding.EncodeToString([]byte(secret[:9])), base64.URLEncoding.EncodeToString([]byte(secret[:9]))) {
			if strings.Contains(lower, strings.ToLower(form)) {
				return form
			}
		}
		if plain, err := url.QueryUnescape(text); err == nil {
			text = plain
		}
		text = html.UnescapeString(text)
		var plain string
		if json.Unmarshal([]byte(`"`+text+`"`), &plain) == nil {
			text = plain
		}
	}
	return ""
}

func TestPrintable_ReturnsOneShortLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain ★":               "plain ★",
		"two\r\nlines\tand\x00": "two  lines and.",
		"\x1b[31mred\u202e":     ".[31mred.",
		"bad \xff\xfe":          "bad ..",
	} {
		if got := printable(in, 100); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := printable("ab★★", 4); got != "ab" {
		t.Errorf("printable(\"ab★★\", 4) = %q, want \"ab\"", got)
	}
}
