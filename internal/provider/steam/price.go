package steam

import (
	"html"
	"slices"
	"strings"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Reasons for rejecting a price, in addition to the reasons in package feed.
const (
	rejectSign  = "amount has no sign of a known currency"
	rejectMixed = "amounts are in two currencies"
)

// price parses a formatted amount. The sign determines the currency. If several currencies
// have the sign, one of them must be the requested currency. An empty text means that
// there is no price; the amount is then 0.
func price(c feed.Cell, requested money.Currency) (amount money.Micro, in money.Currency, reason string) {
	if c.Empty() {
		return 0, "", ""
	}
	if c.Kind != feed.Text {
		return 0, "", feed.RejectSyntax
	}
	text := normalize(c.Text)
	from, to := strings.IndexAny(text, "0123456789"), strings.LastIndexAny(text, "0123456789")+1
	if from < 0 {
		return 0, "", feed.RejectSyntax
	}
	number, suffix := text[from:to], text[to:]
	for _, none := range []string{",--", ".--"} { // "12,--€" is 12 euros and no cents
		if rest, ok := strings.CutPrefix(suffix, none); ok {
			number, suffix = number+none[:1]+"00", rest
		}
	}
	f, ok := formatOf(strings.TrimSpace(text[:from])+strings.TrimSpace(suffix), requested)
	if !ok {
		return 0, "", rejectSign
	}
	plain, ok := f.plain(number)
	if !ok {
		return 0, "", feed.RejectSyntax
	}
	amount, reason = feed.Cell{Kind: feed.Number, Text: []byte(plain)}.Amount(1)
	return amount, f.code, reason
}

// formatOf returns the currency format with a sign. If several currencies have the sign,
// it returns the requested one.
func formatOf(sign string, requested money.Currency) (f currencyFormat, ok bool) {
	found := 0
	for i := range formats {
		if !slices.Contains(formats[i].signs, sign) {
			continue
		}
		if f = formats[i]; f.code == requested {
			return f, true
		}
		found++
	}
	return f, found == 1
}

// plain converts digits with separators to JSON notation. One or two digits after the last
// separator are a fraction. Three digits are a group. If the separator before three digits
// is the currency's decimal separator, the text is ambiguous and plain returns false.
func (f *currencyFormat) plain(number string) (string, bool) {
	whole, fraction, separator := number, "", byte(0)
	if i := strings.LastIndexAny(number, ".,"); i >= 0 {
		switch tail := len(number) - i - 1; {
		case tail <= 2:
			whole, fraction, separator = number[:i], number[i:], number[i]
		case number[i] == f.decimal:
			return "", false
		}
	}
	whole, ok := ungroup(whole, separator, f.code == "INR")
	if !ok || fraction == "" {
		return whole, ok
	}
	return whole + "." + fraction[1:], isDigits(fraction[1:])
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// ungroup removes the group separators of a whole number. All separators must be the same
// and differ from the decimal separator. Groups must have three digits. In Indian notation,
// all groups except the last one may have two.
func ungroup(number string, decimal byte, indian bool) (digits string, ok bool) {
	at := strings.IndexAny(number, ",. '")
	if at < 0 {
		return number, isDigits(number)
	}
	if number[at] == decimal {
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

// normalize decodes HTML entities. It replaces no-break and thin spaces with a space, and
// typographic apostrophes with the ASCII character.
func normalize(text []byte) string {
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

// count reads a number of sales. It accepts a number, or a string that may have separators
// such as "3,990". It returns provider.Unknown if the cell is missing.
func count(c feed.Cell) (n int64, reason string) {
	if c.Kind == feed.Text && !c.Empty() {
		digits, ok := ungroup(normalize(c.Text), 0, false)
		if !ok {
			return provider.Unknown, feed.RejectCount
		}
		c.Text = []byte(digits)
	}
	return c.Count()
}
