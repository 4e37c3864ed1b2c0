package fee

import (
	"math/bits"
	"slices"

	"assay/internal/fault"
	"assay/internal/strictjson"
)

// whole is how many basis points make all of an amount.
const whole = 10_000

// Quote is what a payment costs, and by which rule of which version.
type Quote struct {
	Version int64  // of the set
	Rule    string // FallbackID where no rule matched
	Fee     int64
	Net     int64 // what is left of the amount
}

// Compute returns the fee of a payment: percent and fixed part of the first rule
// that matches, rounded once, not less than its minimum, nor more than its
// maximum, nor ever more than the amount. The same set and payment always yield
// the same. Its error is that of Payment.Check.
func Compute(set *Set, p Payment) (Quote, error) {
	if err := p.Check(); err != nil {
		return Quote{}, err
	}
	rule := set.match(&p)
	fee := rule.charge(p.Amount).fee
	return Quote{Version: set.Version, Rule: rule.ID, Fee: fee, Net: p.Amount - fee}, nil
}

// Check refuses what is no payment: an amount below zero, an unknown kind or
// country, a currency that does not circulate, or an invalid method. Its error is a fault of kind Unprocessable.
func (p *Payment) Check() error {
	var fields []fault.Field
	wrong := func(member, code, detail string) {
		fields = append(fields, fault.Field{Pointer: "/" + member, Code: code, Detail: detail})
	}
	if !slices.Contains(kinds[:], p.Kind) {
		wrong("kind", UnknownValue, "must be one of sale, deposit, withdrawal")
	}
	if p.Amount < 0 {
		wrong("amount", strictjson.OutOfRange, "must be a whole number of minor units of at least 0")
	}
	if !p.Currency.Circulates() {
		wrong("currency", UnknownCurrency, "must be a currency of ISO 4217 that circulates, such as USD")
	}
	if p.Method != "" && !isName(p.Method) {
		wrong("paymentMethod", InvalidName, "must be 1 to 64 letters, digits, '.', '_' or '-'")
	}
	if p.Country != "" && !isCountry(p.Country) {
		wrong("country", UnknownCountry, "must be two letters of ISO 3166-1, such as DE")
	}
	if fields == nil {
		return nil
	}
	f := fault.New(fault.Unprocessable, "invalid_payment", "The payment cannot be quoted; see errors.")
	f.Fields = fields
	return f
}

// Note returns method and country, "card/DE", for a record of the payment; it is
// empty where both are unknown.
func (p *Payment) Note() string {
	if p.Method == "" && p.Country == "" {
		return ""
	}
	return p.Method + "/" + p.Country // neither holds a slash
}

// charge is how a fee comes about.
type charge struct {
	tier    *Tier
	rounded int64 // percent and fixed part
	bounded int64 // the same within minimum and maximum
	fee     int64 // the same, at most the amount
}

// charge returns what the rule takes of an amount.
func (r *Rule) charge(amount int64) charge {
	c := charge{tier: r.tier(amount)}
	n, rest, divisor := c.tier.of(amount, r.Basis)
	c.rounded = clamp(round(n, rest, divisor, r.Rounding))
	c.bounded = max(c.rounded, r.Minimum)
	if r.Maximum != nil {
		c.bounded = min(c.bounded, *r.Maximum)
	}
	c.fee = min(c.bounded, amount)
	return c
}

// of returns the exact fee as a whole number and a rest of the divisor.
//
// Gross, it is amount x points / 10,000 + fixed. Net, it is points / 10,000 of
// what is left, plus fixed; as what is left is the amount less the fee, that is
// (amount x points + fixed x 10,000) / (10,000 + points).
func (t *Tier) of(amount int64, basis Basis) (n, rest, divisor uint64) {
	divisor = whole
	if basis == Net {
		divisor += uint64(t.BasisPoints)
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(t.BasisPoints))
	fixedHi, fixedLo := bits.Mul64(uint64(t.Fixed), whole)
	lo, carry := bits.Add64(lo, fixedLo, 0)
	hi, _ = bits.Add64(hi, fixedHi, carry)
	// The quotient is at most amount + fixed, which is less than 2^64, so that
	// hi is less than the divisor.
	n, rest = bits.Div64(hi, lo, divisor)
	return n, rest, divisor
}

// round rounds n + rest / divisor, which is not negative, to a whole number.
func round(n, rest, divisor uint64, mode Rounding) uint64 {
	up := false
	switch half := divisor - rest; mode {
	case Up:
		up = rest > 0
	case Down:
	case HalfUp:
		up = rest >= half
	default:
		up = rest > half || (rest == half && n%2 == 1)
	}
	if up {
		n++
	}
	return n
}

// clamp returns n, or the greatest amount where it is more than that.
func clamp(n uint64) int64 {
	const most = 1<<63 - 1
	return int64(min(n, most))
}
