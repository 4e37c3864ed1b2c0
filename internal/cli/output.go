package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// output prints results, as JSON or as text.
type output struct {
	w    io.Writer
	json bool
}

// result prints v as JSON with --json, otherwise what text writes.
func (o output) result(v any, text func(w io.Writer)) error {
	if o.json {
		return o.object(v)
	}
	b := bufio.NewWriter(o.w)
	text(b)
	return b.Flush()
}

// object prints v as one line of JSON.
func (o output) object(v any) error {
	line, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false))
	if err != nil {
		return err
	}
	_, err = o.w.Write(append(escapeControls(line), '\n'))
	return err
}

// escapeControls escapes characters that a terminal would execute or reorder. JSON itself
// escapes only the first 32 characters. They occur in strings only.
func escapeControls(line []byte) []byte {
	unsafe := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if !bytes.ContainsFunc(line, unsafe) {
		return line
	}
	var out []byte
	for _, r := range string(line) {
		switch {
		case !unsafe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// table writes rows with aligned columns. Cells must be printable.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = t.Flush() // an error stays in the bufio.Writer beneath
}

// printable returns s in a form that is safe on a terminal: a name with control characters,
// or with a space at its begin or end, is quoted.
func printable(s string) string {
	odd := strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	})
	if odd {
		return strconv.Quote(s)
	}
	return s
}

// maxCell is how many characters of a name a table shows, since one long name would pad
// every row. --json has the whole name.
const maxCell = 64

// cell returns a name for a table: printable, and cut if it is long.
func cell(name string) string {
	shown := []rune(printable(name))
	if len(shown) > maxCell {
		return string(shown[:maxCell-1]) + "…"
	}
	return string(shown)
}

// count writes n with thousands marks.
func count(n int64) string { return humanize.Comma(n) }

// plural writes a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// requests writes a number of requests.
func requests(n int64) string { return plural(n, "request", "requests") }

// moment writes a time in UTC, or "never".
func moment(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// seconds writes a number of seconds as a duration: "41s", "2h05m".
func seconds(n int64) string {
	d := time.Duration(n) * time.Second
	if d >= 48*time.Hour {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + " days"
	}
	if d >= time.Hour {
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	if d >= time.Minute {
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.String()
}

// value returns *p, or the zero value if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// orDash writes *v, or a dash if v is nil.
func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
