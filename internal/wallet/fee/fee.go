// Package fee decides what a payment costs: sets of rules, how they are read,
// checked and compared, what they charge and why, and how the active set is
// replaced. Amounts are whole minor units of a currency (cents); nothing is
// rounded but the fee, once.
package fee

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// Kind is what a payment is for.
type Kind string

// The kinds of payments.
const (
	Sale       Kind = "sale"
	Deposit    Kind = "deposit"
	Withdrawal Kind = "withdrawal"
)

var kinds = [...]Kind{Sale, Deposit, Withdrawal}

// Basis is what the percentage is of.
type Basis string

// The bases. The buyer pays the amount in either case.
const (
	Gross Basis = "gross" // of the amount
	Net   Basis = "net"   // on top of what is left: 15 % are 13.04 % of the amount
)

// Rounding is what becomes of fractions of a minor unit.
type Rounding string

// The roundings.
const (
	HalfEven Rounding = "halfEven"
	HalfUp   Rounding = "halfUp"
	Up       Rounding = "up"
	Down     Rounding = "down"
)

// FallbackID stands for the fallback where a rule is named.
const FallbackID = "fallback"

// Set is a whole set of rules. It is not changed once it is made, so it may be
// used concurrently.
type Set struct {
	Version  int64  // of the activation that it came from; 0: not activated
	Rules    []Rule // by priority, then id
	Fallback Rule   // FallbackID, without conditions
}

// Rule is the fee of the payments that match its conditions. An empty list of
// conditions matches everything.
type Rule struct {
	ID          string
	Priority    int64 // the lowest counts first
	Kinds       []Kind
	Methods     []string
	Currencies  []money.Currency
	Countries   []string // ISO 3166-1 alpha-2
	Amount      Span
	From, Until time.Time // From included, Until not; zero: open
	Basis       Basis
	Rounding    Rounding
	Minimum     int64
	Maximum     *int64 // nil: none
	Tiers       []Tier // one of all amounts where the rule has no tiers

	index int // in the document that it was read from
}

// Span is a range of amounts, From included and Below not; Below 0: open.
type Span struct{ From, Below int64 }

// Tier is what is charged of amounts within its span, of the whole amount.
type Tier struct {
	Span
	BasisPoints int64
	Fixed       int64
}

// Payment is the input of a fee computation.
type Payment struct {
	Kind     Kind
	Amount   int64 // what the payer pays, fee included
	Currency money.Currency
	Method   string // empty: unknown, which no condition matches
	Country  string // the same
	At       time.Time
}

// pointer names the rule in the document that it was read from.
func (r *Rule) pointer() string {
	if r.ID == FallbackID {
		return "/fallback"
	}
	return at("/rules", r.index)
}

// has reports whether the amount lies within the span.
func (s Span) has(amount int64) bool {
	return amount >= s.From && (s.Below == 0 || amount < s.Below)
}

func (s Span) overlaps(o Span) bool {
	return (s.Below == 0 || o.From < s.Below) && (o.Below == 0 || s.From < o.Below)
}

// alive reports whether the rule is in effect at a moment.
func (r *Rule) alive(t time.Time) bool {
	return !t.Before(r.From) && (r.Until.IsZero() || t.Before(r.Until))
}

// matches reports whether all conditions of the rule match.
func (r *Rule) matches(p *Payment) bool {
	return in(r.Kinds, p.Kind) && in(r.Currencies, p.Currency) && r.Amount.has(p.Amount) &&
		in(r.Methods, p.Method) && in(r.Countries, p.Country) && r.alive(p.At)
}

// in reports whether a list of conditions, sorted, allows the value.
func in[T ~string](list []T, value T) bool {
	if len(list) == 0 {
		return true
	}
	_, found := slices.BinarySearch(list, value)
	return found
}

// match returns the rule that applies.
func (s *Set) match(p *Payment) *Rule {
	for i := range s.Rules {
		if s.Rules[i].matches(p) {
			return &s.Rules[i]
		}
	}
	return &s.Fallback
}

// tier returns what the rule charges for an amount.
func (r *Rule) tier(amount int64) *Tier {
	for i := range r.Tiers {
		if r.Tiers[i].has(amount) {
			return &r.Tiers[i]
		}
	}
	return &r.Tiers[len(r.Tiers)-1]
}

// byPriority orders rules as they are tried.
func byPriority(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.ID, b.ID))
}
