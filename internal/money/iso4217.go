package money

import (
	"iter"
	"strconv"
	"strings"
)

// circulating are the currencies of ISO 4217 that are used for payment: without
// funds, units of account, metals, and the codes for testing and for nothing.
const circulating = " AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD" +
	" CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD" +
	" HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD" +
	" MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG" +
	" QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS" +
	" UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG "

// Circulates reports whether a currency is one of ISO 4217 that is used
// for payment, unlike XXX, XTS or gold.
func (c Currency) Circulates() bool {
	return len(c) == 3 && strings.Contains(circulating, " "+string(c)+" ")
}

// Circulating yields all such currencies, by their codes.
func Circulating() iter.Seq[Currency] {
	return func(yield func(Currency) bool) {
		for code := range strings.FieldsSeq(circulating) {
			if !yield(Currency(code)) {
				return
			}
		}
	}
}

// Those whose minor unit is not a hundredth.
const (
	undivided   = " BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF "
	thousandths = " BHD IQD JOD KWD LYD OMR TND "
)

// MinorDigits returns how many decimal places the minor unit of a circulating
// currency has by ISO 4217: 2 for the dollar's cents, 0 for the yen.
func (c Currency) MinorDigits() int {
	code := " " + string(c) + " "
	switch {
	case strings.Contains(undivided, code):
		return 0
	case strings.Contains(thousandths, code):
		return 3
	default:
		return 2
	}
}

// Minor writes a whole number of minor units of the currency as a decimal
// number with all its places: "12.30" dollars, "1230" yen.
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
