package fee

import (
	"fmt"
	"strings"
	"time"

	"assay/internal/money"
)

// Explanation is a quote with the steps of its computation.
type Explanation struct {
	Quote
	Steps      []string // computation of the fee, in order
	NotMatched []Miss   // rules evaluated before the matching rule, at most maxMisses
	MoreMisses int      // number of further rules that did not match
}

// Miss is a rule that does not match, with the reason.
type Miss struct{ Rule, Reason string }

// maxMisses is the maximum number of listed rules that did not match.
const maxMisses = 50

// Explain does the same as Compute and also returns the steps of the computation.
func Explain(set *Set, p Payment) (Explanation, error) {
	quote, err := Compute(set, p)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Quote: quote, NotMatched: []Miss{}}
	rule := set.match(&p)
	for i := range set.Rules {
		tried := &set.Rules[i]
		if tried == rule {
			break
		}
		if len(e.NotMatched) == maxMisses {
			e.MoreMisses++
			continue
		}
		e.NotMatched = append(e.NotMatched, Miss{tried.ID, tried.miss(&p)})
	}
	e.Steps = rule.steps(&p)
	return e, nil
}

// miss describes the first condition of the rule that does not match.
func (r *Rule) miss(p *Payment) string {
	switch {
	case !in(r.Kinds, p.Kind):
		return fmt.Sprintf("kind is %s; the rule requires %s", p.Kind, oneOf(r.Kinds))
	case !in(r.Currencies, p.Currency):
		return fmt.Sprintf("currency is %s; the rule requires %s", p.Currency, oneOf(r.Currencies))
	case !in(r.Methods, p.Method):
		return fmt.Sprintf("payment method is %s; the rule requires %s", known(p.Method), oneOf(r.Methods))
	case !in(r.Countries, p.Country):
		return fmt.Sprintf("country is %s; the rule requires %s", known(p.Country), oneOf(r.Countries))
	case !r.Amount.has(p.Amount):
		return fmt.Sprintf("amount is %d; the rule requires %s", p.Amount, r.Amount)
	case p.At.Before(r.From):
		return "in effect from " + r.From.Format(time.RFC3339)
	default:
		return "in effect until " + r.Until.Format(time.RFC3339)
	}
}

func known(value string) string {
	if value == "" {
		return "missing"
	}
	return fmt.Sprintf("%.64q", value)
}

// oneOf lists the first values of a condition.
func oneOf[T ~string](values []T) string {
	const most = 5
	texts := make([]string, 0, most)
	for _, v := range values[:min(len(values), most)] {
		texts = append(texts, string(v))
	}
	switch more := len(values) - most; {
	case len(values) == 1:
		return texts[0]
	case more > 0:
		return fmt.Sprintf("one of %s or %d others", strings.Join(texts, ", "), more)
	default:
		return "one of " + strings.Join(texts, ", ")
	}
}

// String returns the range in words, such as "from 100 to below 500".
func (s Span) String() string {
	if s.Below == 0 {
		return fmt.Sprintf("from %d", s.From)
	}
	return fmt.Sprintf("from %d to below %d", s.From, s.Below)
}

// steps describes the computation of the fee.
func (r *Rule) steps(p *Payment) []string {
	amount := func(n int64) string { return p.Currency.Minor(n) + " " + string(p.Currency) }
	c := r.charge(p.Amount)
	steps := []string{fmt.Sprintf("rule %s applies: priority %d, %s", r.ID, r.Priority, r.why())}
	if r.ID == FallbackID {
		steps[0] = "no rule matches, so the fallback applies"
	}
	if len(r.Tiers) > 1 {
		steps = append(steps, fmt.Sprintf("%s is in the tier of amounts %s", amount(p.Amount), c.tier.Span))
	}
	n, rest, divisor := c.tier.of(p.Amount, r.Basis)
	exactly := fmt.Sprintf("%d", n)
	if rest > 0 {
		exactly = fmt.Sprintf("%d and %d/%d", n, rest, divisor)
	}
	of := "of"
	if r.Basis == Net {
		of = "of the net part of"
	}
	steps = append(steps, fmt.Sprintf("%s %% %s %s plus %s fixed = %s minor units",
		Percent(c.tier.BasisPoints), of, amount(p.Amount), amount(c.tier.Fixed), exactly))
	if rest > 0 {
		steps = append(steps, fmt.Sprintf("rounded %s: %s", r.Rounding, amount(c.rounded)))
	}
	if r.Minimum > c.rounded {
		steps = append(steps, "raised to the minimum: "+amount(r.Minimum))
	}
	if c.bounded < max(c.rounded, r.Minimum) {
		steps = append(steps, "lowered to the maximum: "+amount(c.bounded))
	}
	if c.fee < c.bounded {
		steps = append(steps, "lowered to the amount: "+amount(c.fee))
	}
	return append(steps, fmt.Sprintf("the fee is %s; the net amount is %s", amount(c.fee), amount(p.Amount-c.fee)))
}

// why describes the conditions of the rule.
func (r *Rule) why() string {
	var parts []string
	add := func(name string, n int, list string) {
		if n > 0 {
			parts = append(parts, name+" "+list)
		}
	}
	add("kind", len(r.Kinds), oneOf(r.Kinds))
	add("currency", len(r.Currencies), oneOf(r.Currencies))
	add("payment method", len(r.Methods), oneOf(r.Methods))
	add("country", len(r.Countries), oneOf(r.Countries))
	if r.Amount != (Span{}) {
		parts = append(parts, "amount "+r.Amount.String())
	}
	if len(parts) == 0 {
		return "without conditions"
	}
	return strings.Join(parts, ", ")
}

// Percent formats basis points as percent, such as "2.9".
func Percent(points int64) string {
	return (money.Micro(points) * money.Scale / 100).String()
}
