// Package fee computes the fees of payments. It decodes, validates and compares sets of
// rules, computes and explains fees, and activates new sets. Amounts are whole minor units
// of a currency, such as cents. Only the fee is rounded, and only once.
package fee

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// Kind is the kind of a payment.
type Kind string

// The kinds of payments.
const (
	Sale       Kind = "sale"
	Deposit    Kind = "deposit"
	Withdrawal Kind = "withdrawal"
)

var kinds = [...]Kind{Sale, Deposit, Withdrawal}

// Kinds returns all kinds of payments.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Basis is the amount that the percentage applies to.
type Basis string

// The bases. The buyer pays the amount in both cases.
const (
	Gross Basis = "gross" // percentage of the amount
	Net   Basis = "net"   // percentage of the amount minus the fee: 15 % of net are 13.04 % of the amount
)

// Rounding is the rounding mode for fractions of a minor unit.
type Rounding string

// The rounding modes.
const (
	HalfEven Rounding = "halfEven"
	HalfUp   Rounding = "halfUp"
	Up       Rounding = "up"
	Down     Rounding = "down"
)

// FallbackID is the rule id of the fallback.
const FallbackID = "fallback"

// Set is a complete set of rules. It is immutable and safe for concurrent use.
type Set struct {
	Version  int64  // version of its activation; 0: not activated
	Rules    []Rule // ordered by priority, then id
	Fallback Rule   // id FallbackID, no conditions
}

// Rule is the fee of the payments that match its conditions. An empty list of a condition
// matches every value.
type Rule struct {
	ID          string
	Priority    int64 // the lowest priority is evaluated first
	Kinds       []Kind
	Methods     []string
	Currencies  []money.Currency
	Countries   []string // ISO 3166-1 alpha-2
	Amount      Span
	From, Until time.Time // From is inclusive, Until exclusive; zero: unlimited
	Basis       Basis
	Rounding    Rounding
	Minimum     int64
	Maximum     *int64 // nil: unlimited
	Tiers       []Tier // a rule without tiers has one tier for all amounts

	index int // index in the document
}

// Span is a range of amounts. From is inclusive, Below exclusive. Below 0 means unlimited.
type Span struct{ From, Below int64 }

// Tier is the rate for amounts within a span. The rate applies to the whole amount.
type Tier struct {
	Span
	BasisPoints int64
	Fixed       int64
}

// Payment is the input of a fee computation.
type Payment struct {
	Kind     Kind
	Amount   int64 // paid amount, including the fee
	Currency money.Currency
	Method   string // empty: unknown; matches no condition
	Country  string // empty: unknown; matches no condition
	At       time.Time
}

// pointer returns the JSON pointer to the rule in its document.
func (r *Rule) pointer() string {
	if r.ID == FallbackID {
		return "/fallback"
	}
	return at("/rules", r.index)
}

// has reports whether the amount is within the span.
func (s Span) has(amount int64) bool {
	return amount >= s.From && (s.Below == 0 || amount < s.Below)
}

func (s Span) overlaps(o Span) bool {
	return (s.Below == 0 || o.From < s.Below) && (o.Below == 0 || s.From < o.Below)
}

// inEffect reports whether the rule is in effect at a time.
func (r *Rule) inEffect(t time.Time) bool {
	return !t.Before(r.From) && (r.Until.IsZero() || t.Before(r.Until))
}

// matches reports whether all conditions of the rule match.
func (r *Rule) matches(p *Payment) bool {
	return in(r.Kinds, p.Kind) && in(r.Currencies, p.Currency) && r.Amount.has(p.Amount) &&
		in(r.Methods, p.Method) && in(r.Countries, p.Country) && r.inEffect(p.At)
}

// in reports whether a condition matches a value. The list is sorted; an empty list
// matches every value.
func in[T ~string](list []T, value T) bool {
	if len(list) == 0 {
		return true
	}
	_, found := slices.BinarySearch(list, value)
	return found
}

// match returns the first rule that matches, or the fallback.
func (s *Set) match(p *Payment) *Rule {
	for i := range s.Rules {
		if s.Rules[i].matches(p) {
			return &s.Rules[i]
		}
	}
	return &s.Fallback
}

// tier returns the tier of an amount.
func (r *Rule) tier(amount int64) *Tier {
	for i := range r.Tiers {
		if r.Tiers[i].has(amount) {
			return &r.Tiers[i]
		}
	}
	return &r.Tiers[len(r.Tiers)-1]
}

// byPriority orders rules by priority, then id.
func byPriority(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.ID, b.ID))
}
