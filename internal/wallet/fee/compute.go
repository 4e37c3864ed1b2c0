package fee

import (
	"math/bits"
	"slices"

	"assay/internal/fault"
	"assay/internal/strictjson"
)

// whole is 100 percent in basis points.
const whole = 10_000

// Quote is the fee of a payment, and the rule and version that determine it.
type Quote struct {
	Version int64  // version of the set
	Rule    string // FallbackID if no rule matched
	Fee     int64
	Net     int64 // amount minus fee
}

// Compute returns the fee of a payment. It applies the first matching rule: the percentage
// plus the fixed part, rounded once, then limited by the minimum, the maximum and the
// amount. The result depends only on the set and the payment. It returns the error of
// Payment.Check.
func Compute(set *Set, p Payment) (Quote, error) {
	if err := p.Check(); err != nil {
		return Quote{}, err
	}
	rule := set.match(&p)
	fee := rule.charge(p.Amount).fee
	return Quote{Version: set.Version, Rule: rule.ID, Fee: fee, Net: p.Amount - fee}, nil
}

// Check validates a payment. It returns a fault of kind Unprocessable for a negative
// amount, an unknown kind or country, a currency that is not in circulation, or an invalid
// method.
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
		wrong("currency", UnknownCurrency, "must be a circulating ISO 4217 currency, such as USD")
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

// Note returns the method and country, such as "card/DE", for a record of the payment. It
// returns "" if both are unknown.
func (p *Payment) Note() string {
	if p.Method == "" && p.Country == "" {
		return ""
	}
	return p.Method + "/" + p.Country // method and country contain no slash
}

// charge holds the steps of a fee computation.
type charge struct {
	tier    *Tier
	rounded int64 // percentage plus fixed part, rounded
	bounded int64 // rounded, limited by minimum and maximum
	fee     int64 // bounded, limited by the amount
}

// charge computes the fee of an amount with the rule.
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

// of returns the exact fee as the whole number n and the fraction rest/divisor.
//
// With basis Gross, the fee is amount x points / 10,000 + fixed. With basis Net, the
// percentage applies to amount - fee. The fee is therefore (amount x points + fixed x
// 10,000) / (10,000 + points).
func (t *Tier) of(amount int64, basis Basis) (n, rest, divisor uint64) {
	divisor = whole
	if basis == Net {
		divisor += uint64(t.BasisPoints)
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(t.BasisPoints))
	fixedHi, fixedLo := bits.Mul64(uint64(t.Fixed), whole)
	lo, carry := bits.Add64(lo, fixedLo, 0)
	hi, _ = bits.Add64(hi, fixedHi, carry)
	// The quotient is at most amount + fixed, so it is less than 2^64. Therefore hi is less
	// than the divisor, as Div64 requires.
	n, rest = bits.Div64(hi, lo, divisor)
	return n, rest, divisor
}

// round rounds n + rest/divisor to a whole number. The value is not negative.
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

// clamp returns n, limited to the maximum of an int64.
func clamp(n uint64) int64 {
	const most = 1<<63 - 1
	return int64(min(n, most))
}
