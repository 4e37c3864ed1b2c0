package money

import (
	"iter"
	"strconv"
	"strings"
)

// circulating lists the ISO 4217 currencies that people pay with. It omits the codes
// for funds, units of account, metals, tests and "no currency".
const circulating = " AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD" +
	" CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD" +
	" HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD" +
	" MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG" +
	" QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS" +
	" UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG "

// Circulates reports whether c is an ISO 4217 currency that people pay with. It returns
// false for codes such as XXX (no currency), XTS (tests) and XAU (gold).
func (c Currency) Circulates() bool {
	return len(c) == 3 && strings.Contains(circulating, " "+string(c)+" ")
}

// Circulating returns all currencies for which Circulates is true, sorted by code.
func Circulating() iter.Seq[Currency] {
	return func(yield func(Currency) bool) {
		for code := range strings.FieldsSeq(circulating) {
			if !yield(Currency(code)) {
				return
			}
		}
	}
}

// Currencies with a minor unit other than a hundredth.
const (
	noMinorUnit = " BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF "
	thousandths = " BHD IQD JOD KWD LYD OMR TND "
)

// MinorDigits returns the number of decimal places of the currency's minor unit in
// ISO 4217: 2 for the dollar, 0 for the yen. The currency must be circulating.
func (c Currency) MinorDigits() int {
	code := " " + string(c) + " "
	switch {
	case strings.Contains(noMinorUnit, code):
		return 0
	case strings.Contains(thousandths, code):
		return 3
	default:
		return 2
	}
}

// Minor formats an amount in minor units as a decimal number with all decimal places
// of the currency: "12.30" for dollars, "1230" for yen.
func (c Currency) Minor(amount int64) string {
	digits := c.MinorDigits()
	text := strconv.FormatUint(magnitude(Micro(amount)), 10)
	if short := digits + 1 - len(text); short > 0 {
		text = strings.Repeat("0", short) + text
	}
	if digits > 0 {
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	if amount < 0 {
		return "-" + text
	}
	return text
}
