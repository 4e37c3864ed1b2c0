package steam

import (
	"html"
	"slices"
	"strings"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Why a text is no price, beside feed's own reasons.
const (
	rejectSign  = "amount has no sign that tells its currency"
	rejectMixed = "amounts are in two currencies"
)

// price reads an amount as people of some country write it. Its sign tells the
// currency; one that several share tells nothing unless one of them was requested.
// No text is no price, which is 0.
func price(c feed.Cell, asked money.Currency) (amount money.Micro, in money.Currency, reason string) {
	if c.Empty() {
		return 0, "", ""
	}
	if c.Kind != feed.Text {
		return 0, "", feed.RejectSyntax
	}
	text := normal(c.Text)
	from, to := strings.IndexAny(text, "0123456789"), strings.LastIndexAny(text, "0123456789")+1
	if from < 0 {
		return 0, "", feed.RejectSyntax
	}
	number, behind := text[from:to], text[to:]
	for _, none := range []string{",--", ".--"} { // "12,--€"
		if rest, ok := strings.CutPrefix(behind, none); ok {
			number, behind = number+none[:1]+"00", rest
		}
	}
	t, ok := tenderOf(strings.TrimSpace(text[:from])+strings.TrimSpace(behind), asked)
	if !ok {
		return 0, "", rejectSign
	}
	plain, ok := t.plain(number)
	if !ok {
		return 0, "", feed.RejectSyntax
	}
	amount, reason = feed.Cell{Kind: feed.Number, Text: []byte(plain)}.Amount(1)
	return amount, t.code, reason
}

// tenderOf returns the currency that a sign stands for.
func tenderOf(sign string, asked money.Currency) (t tender, ok bool) {
	of := 0
	for i := range tenders {
		if !slices.Contains(tenders[i].signs, sign) {
			continue
		}
		if t = tenders[i]; t.code == asked {
			return t, true
		}
		of++
	}
	return t, of == 1
}

// plain writes digits with separators as JSON does. One or two digits behind the
// last separator are a fraction. Three are a group of the whole, unless what stands
// before them is what the currency writes before its fraction: then the
// meaning is not known.
func (t *tender) plain(number string) (string, bool) {
	whole, fraction, separator := number, "", byte(0)
	if i := strings.LastIndexAny(number, ".,"); i >= 0 {
		switch tail := len(number) - i - 1; {
		case tail <= 2:
			whole, fraction, separator = number[:i], number[i:], number[i]
		case number[i] == t.decimal:
			return "", false
		}
	}
	whole, ok := ungroup(whole, separator, t.code == "INR")
	if !ok || fraction == "" {
		return whole, ok
	}
	return whole + "." + fraction[1:], isDigits(fraction[1:])
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// ungroup takes the separators out of a whole number. They are all the same and
// not the one of its fraction, and three digits follow each; in India two do, but
// for the last.
func ungroup(number string, taken byte, indian bool) (digits string, ok bool) {
	at := strings.IndexAny(number, ",. '")
	if at < 0 {
		return number, isDigits(number)
	}
	if number[at] == taken {
		return "", false
	}
	groups := strings.Split(number, number[at:at+1])
	for i, group := range groups {
		last := i == len(groups)-1
		switch n := len(group); {
		case !isDigits(group):
			return "", false
		case i == 0 && n >= 1 && n <= 3:
		case i > 0 && n == 3:
		case i > 0 && n == 2 && indian && !last:
		default:
			return "", false
		}
	}
	return strings.Join(groups, ""), true
}

// normal writes a text without the entities of HTML, and each kind of space and
// apostrophe in one way.
func normal(text []byte) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\u00a0', '\u2009', '\u202f':
			return ' '
		case '’':
			return '\''
		}
		return r
	}, html.UnescapeString(string(text)))
}

// count reads a number of sales, which has separators whatever the currency:
// "3,990", and sometimes is no text. None is unknown.
func count(c feed.Cell) (n int64, reason string) {
	if c.Kind == feed.Text && !c.Empty() {
		digits, ok := ungroup(normal(c.Text), 0, false)
		if !ok {
			return provider.Unknown, feed.RejectCount
		}
		c.Text = []byte(digits)
	}
	return c.Count()
}
