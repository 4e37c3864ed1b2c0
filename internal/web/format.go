package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"assay/internal/money"
)

// formatCount formats 28800 as "28,800".
func formatCount(v any) string {
	var n int64
	switch v := v.(type) {
	case int64:
		n = v
	case *int64:
		if v == nil {
			return "–"
		}
		n = *v
	case int:
		n = int64(v)
	}
	return humanize.Comma(n)
}

// sentence formats an error text as a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// priceText is a price with a short text and the exact amount.
type priceText struct {
	Known bool
	Short string // for example "$12.35"
	Exact string // for example "12.345678"
	Code  money.Currency
}

// price formats a Micro or *Micro. A missing price is nil or zero.
func (s *pages) price(v any, currency money.Currency) priceText {
	var m money.Micro
	switch v := v.(type) {
	case money.Micro:
		m = v
	case *money.Micro:
		if v == nil {
			return priceText{}
		}
		m = *v
	}
	if m == 0 {
		return priceText{}
	}
	return priceText{Known: true, Short: shortPrice(m, currency), Exact: m.String(), Code: currency}
}

// minor formats an amount in minor units with all its decimal places.
func minor(amount int64, currency any) priceText {
	code := money.Currency(fmt.Sprint(currency))
	exact := code.Minor(amount)
	digits, sign := strings.TrimPrefix(exact, "-"), ""
	if amount < 0 {
		sign = "-"
	}
	whole, fraction, found := strings.Cut(digits, ".")
	n, _ := strconv.ParseInt(whole, 10, 64) // never fails: amounts have 64 bits
	short := sign + symbol(code) + humanize.Comma(n)
	if found {
		short += "." + fraction
	}
	return priceText{Known: true, Short: short, Exact: exact, Code: code}
}

// sum formats a total. A total beyond 64 bits is not rounded.
func sum(v money.Sum, currency money.Currency) priceText {
	out := priceText{Known: true, Exact: v.String(), Code: currency}
	if m, ok := v.Div(1); ok {
		out.Short = symbol(currency) + rounded(uint64(m), 2)
	} else {
		out.Short = symbol(currency) + out.Exact
	}
	return out
}

// shortPrice rounds half to even. It rounds prices of 0.10 or more to cents, and lower ones to
// hundredths of a cent.
func shortPrice(m money.Micro, currency money.Currency) string {
	sign, u, places := "", uint64(m), 2
	if m < 0 {
		sign, u = "-", -u
	}
	if u < money.Scale/10 {
		places = 4
	}
	return sign + symbol(currency) + rounded(u, places)
}

// factor formats a *Micro that is a factor, rounded to two decimal places, or to three below 10.
func factor(v *money.Micro) priceText {
	if v == nil {
		return priceText{}
	}
	places := 2
	if *v < 10*money.Scale {
		places = 3
	}
	return priceText{Known: true, Short: rounded(uint64(*v), places) + "×", Exact: v.String()}
}

// formatChange formats a *Micro that is a relative change, in percent with a sign.
func formatChange(v *money.Micro) string {
	if v == nil {
		return "–"
	}
	sign, u := "+", uint64(*v)
	if *v < 0 {
		sign, u = "-", -u
	}
	text := rounded(u*100, 2)
	if text == "0.00" {
		sign = ""
	}
	return sign + text + " %"
}

// formatShare formats a share in percent.
func formatShare(v *money.Micro) string { return rounded(uint64(*v)*100, 2) + " %" }

// rounded rounds millionths half to even to a number of decimal places. It shows at least two.
func rounded(u uint64, places int) string {
	unit := uint64(money.Scale)
	for range places {
		unit /= 10
	}
	quotient, rest := u/unit, u%unit
	if rest*2 > unit || (rest*2 == unit && quotient%2 == 1) {
		quotient++
	}
	perWhole := money.Scale / unit
	whole, fraction := quotient/perWhole, strconv.FormatUint(quotient%perWhole, 10)
	fraction = strings.Repeat("0", places-len(fraction)) + fraction
	for len(fraction) > 2 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return humanize.Comma(int64(whole)) + "." + fraction
}

// symbol returns the symbol of a currency, as a prefix of amounts.
func symbol(c money.Currency) string {
	switch c {
	case "USD":
		return "$"
	case "EUR":
		return "€"
	case "GBP":
		return "£"
	default:
		return string(c) + "\u00a0"
	}
}

// stamp is a time with a relative text and the exact time.
type stamp struct {
	Known bool
	ISO   string
	Exact string
	Ago   string
	For   string // time from then until now, after the word "for"
}

// when formats a time.Time or *time.Time.
func (s *pages) when(v any) stamp {
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v == nil {
			return stamp{}
		}
		t = *v
	}
	if t.IsZero() {
		return stamp{}
	}
	t = t.UTC()
	return stamp{
		Known: true, ISO: t.Format(time.RFC3339),
		Exact: t.Format("2006-01-02 15:04:05 UTC"), Ago: relative(s.Now().Sub(t)), For: coarse(max(0, s.Now().Sub(t))),
	}
}

// relative formats an age, or a time in the future if age is negative. app.js contains the
// same algorithm, which updates open pages.
func relative(age time.Duration) string {
	switch {
	case age <= -time.Second:
		return "in " + coarse(-age)
	case age < 5*time.Second:
		return "just now"
	default:
		return coarse(age) + " ago"
	}
}

// coarse formats a duration in its largest unit.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + " d"
	}
}

// humanSeconds formats a number of seconds.
func humanSeconds(v any) string {
	switch v := v.(type) {
	case int64:
		return humanDuration(time.Duration(v) * time.Second)
	case *int64:
		if v != nil {
			return humanDuration(time.Duration(*v) * time.Second)
		}
	case float64:
		return humanDuration(time.Duration(v * float64(time.Second)))
	case *float64:
		if v != nil {
			return humanDuration(time.Duration(*v * float64(time.Second)))
		}
	case time.Duration:
		return humanDuration(v)
	}
	return "–"
}

// humanDuration formats a duration in its two largest units, such as "3 min 20 s".
func humanDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 s"
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + " ms"
	case d < 10*time.Second && d%time.Second != 0:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return twoUnits(d, time.Minute, " min", time.Second, " s")
	case d < 48*time.Hour:
		return twoUnits(d, time.Hour, " h", time.Minute, " min")
	default:
		return twoUnits(d, 24*time.Hour, " d", time.Hour, " h")
	}
}

func twoUnits(d, great time.Duration, greatName string, small time.Duration, smallName string) string {
	text := strconv.Itoa(int(d/great)) + greatName
	if rest := d % great / small; rest > 0 {
		text += " " + strconv.Itoa(int(rest)) + smallName
	}
	return text
}
