package steam

import (
	"html"
	"slices"
	"strings"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Reasons for rejecting a price, besides those of feed.
const (
	rejectSign  = "amount has no sign of a known currency"
	rejectMixed = "amounts are in two currencies"
)

// price reads a formatted amount. Its sign determines the currency; an ambiguous sign
// counts only if the requested currency has it. An empty text means no price, which is 0.
func price(c feed.Cell, requested money.Currency) (amount money.Micro, in money.Currency, reason string) {
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
	t, ok := tenderOf(strings.TrimSpace(text[:from])+strings.TrimSpace(behind), requested)
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

// tenderOf returns the currency of a sign.
func tenderOf(sign string, requested money.Currency) (t tender, ok bool) {
	of := 0
	for i := range tenders {
		if !slices.Contains(tenders[i].signs, sign) {
			continue
		}
		if t = tenders[i]; t.code == requested {
			return t, true
		}
		of++
	}
	return t, of == 1
}

// plain converts digits with separators to JSON notation. One or two digits after the last
// separator are a fraction. Three are a group, unless the separator is the currency's
// decimal separator: then the text is ambiguous.
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

// ungroup removes the separators of a whole number. They must be equal, differ from the
// decimal separator, and precede groups of three digits; in India groups of two, except the
// last.
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

// normal decodes HTML entities and replaces each kind of space and apostrophe with one
// form.
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

// count reads a number of sales. It may have separators ("3,990") and may be a number or a
// string. Missing means unknown.
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
