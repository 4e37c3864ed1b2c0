package provider

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMask_HidesEverySpelling(t *testing.T) {
	m := newMasker([]string{"s3cr3t/key+1", "s3cr3t", "", "longer-s3cr3t"})
	for in, want := range map[string]string{
		"":                            "",
		"nothing here":                "nothing here",
		"key s3cr3t/key+1.":           "key ***.",
		"key s3cr3t%2Fkey%2B1.":       "key ***.",
		"s3cr3t and longer-s3cr3t":    "*** and ***",
		"cut in half: s3cr3t/ke":      "cut in half: ***/ke",
		"cut in half: longer-s3":      "cut in half: ***",
		"too short to tell apart: s3": "too short to tell apart: s3",
	} {
		if got := m.mask(in); got != want {
			t.Errorf("mask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMask_PathKeepsKeysOfTheQueryOnly(t *testing.T) {
	m := newMasker([]string{"s3cr3t"})
	for in, want := range map[string]string{
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
		t.Errorf("%d bytes of path are kept", got)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("canary-0123456789", "before ", " after")
	f.Add("a/b+c d&e", "http://h/", "?x=1")
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		// What masking leaves or puts in could spell a secret of few letters.
		if len(secret) < 8 || strings.Contains(before+after+maskText, secret[:2]) || strings.Contains(secret, "*") {
			return
		}
		m := newMasker([]string{secret})
		for _, s := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if got := printable(m.mask(before+s+after), maxDetail); strings.Contains(got, s) || !utf8.ValidString(got) {
				t.Errorf("%q shows in %q", s, got)
			}
		}
	})
}

func TestPrintable_IsOneLineAndBounded(t *testing.T) {
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
		t.Errorf("cut within a letter: %q", got)
	}
}
