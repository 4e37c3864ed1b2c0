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

// output prints results as JSON or text.
type output struct {
	w    io.Writer
	json bool
}

// result prints v as JSON if --json is set. Otherwise it calls text.
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

// escapeControls escapes characters that control or reorder terminal output. JSON requires
// this only for the first 32 characters. Such characters can occur only in strings.
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
	_ = t.Flush() // the bufio.Writer keeps the error
}

// printable returns s in a form that is safe on a terminal. It quotes a text that contains control
// characters, or that starts or ends with a space.
func printable(s string) string {
	odd := strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	})
	if odd {
		return strconv.Quote(s)
	}
	return s
}

// maxCell is the maximum number of characters of a name in a table. A longer name would widen
// every row. --json prints the whole name.
const maxCell = 64

// cell returns a name for a table. It is printable and truncated to maxCell.
func cell(name string) string {
	shown := []rune(printable(name))
	if len(shown) > maxCell {
		return string(shown[:maxCell-1]) + "…"
	}
	return string(shown)
}

// count formats n with thousands separators.
func count(n int64) string { return humanize.Comma(n) }

// plural formats a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// requests formats a number of requests.
func requests(n int64) string { return plural(n, "request", "requests") }

// moment formats a time in UTC. It returns "never" for nil.
func moment(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// seconds formats a number of seconds as a duration, such as "41s" or "2h05m".
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

// orDash formats *v. It returns a dash if v is nil.
func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
