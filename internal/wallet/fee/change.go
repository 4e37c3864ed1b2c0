package fee

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// Diff lists the ids of the rules that differ between two sets. Each list is sorted.
type Diff struct{ Added, Removed, Modified []string }

// Compare returns the differences of next from was. It identifies a rule by its id.
func Compare(was, next *Set) Diff {
	d := Diff{Added: []string{}, Removed: []string{}, Modified: []string{}}
	before, after := was.texts(), next.texts()
	for id, text := range after {
		switch old, known := before[id]; {
		case !known:
			d.Added = append(d.Added, id)
		case old != text:
			d.Modified = append(d.Modified, id)
		}
	}
	for id := range before {
		if _, remains := after[id]; !remains {
			d.Removed = append(d.Removed, id)
		}
	}
	slices.Sort(d.Added)
	slices.Sort(d.Removed)
	slices.Sort(d.Modified)
	return d
}

// texts returns the JSON text of each rule and the fallback, by id.
func (s *Set) texts() map[string]string {
	out := map[string]string{}
	for r := range s.all() {
		text, _ := json.Marshal(r.document()) // never fails: the values are valid
		out[r.ID] = string(text)
	}
	return out
}

// all iterates over the rules and the fallback.
func (s *Set) all() func(yield func(*Rule) bool) {
	return func(yield func(*Rule) bool) {
		for i := range s.Rules {
			if !yield(&s.Rules[i]) {
				return
			}
		}
		yield(&s.Fallback)
	}
}

// LargeChange is a change of a sample payment's fee that is large enough to need an
// operator's confirmation.
type LargeChange struct {
	Payment       Payment
	Was, Next     string // rule ids
	Before, After int64  // fees
	Pointer       string // JSON pointer to the new rule in its document
}

// String describes the change in one line.
func (c LargeChange) String() string {
	return c.Text() + " at " + c.Payment.At.UTC().Format(time.RFC3339)
}

// Text describes the change without its time.
func (c LargeChange) Text() string {
	what := []string{string(c.Payment.Kind), c.Payment.Currency.Minor(c.Payment.Amount), string(c.Payment.Currency)}
	if c.Payment.Method != "" {
		what = append(what, "by", c.Payment.Method)
	}
	if c.Payment.Country != "" {
		what = append(what, "in", c.Payment.Country)
	}
	return fmt.Sprintf("%s: the fee would change from %s (rule %s) to %s (rule %s)", strings.Join(what, " "),
		c.Payment.Currency.Minor(c.Before), c.Was, c.Payment.Currency.Minor(c.After), c.Next)
}

// isLarge reports whether a fee changes by more than half of its previous value, or by
// more than five percent of the amount.
func isLarge(before, after, amount int64) bool {
	by := max(before, after) - min(before, after)
	return by > before-by || by > amount/20
}

const (
	maxLarge  = 100     // reported changes
	maxProbes = 200_000 // sample payments
)

// LargeChanges computes the fees of sample payments with both sets and returns the large
// changes. It samples payments that match a changed rule. The samples combine each kind,
// currency, method and country that the sets name, and one more that they do not name. The
// times are now and each start or end of a rule. The amounts are the limits of conditions,
// tiers, minima and maxima, and the powers of ten from 100 to 10^9. LargeChanges reports
// the first change per pair of rules and currency. If there are too many samples, it takes
// an even selection.
func LargeChanges(was, next *Set, now time.Time) []LargeChange {
	before, after := was.texts(), next.texts()
	var regions []*Rule
	for r := range was.all() {
		if after[r.ID] != before[r.ID] {
			regions = append(regions, r)
		}
	}
	for r := range next.all() {
		if after[r.ID] != before[r.ID] {
			regions = append(regions, r)
		}
	}
	p := prober{was: was, next: next, named: name(was, next, now), seen: map[[3]string]bool{}}
	for _, r := range regions {
		p.region(r, maxProbes/len(regions))
	}
	return p.found
}

// named holds the values that two sets name. Each list also has one value that the sets do
// not name.
type named struct {
	currencies []money.Currency
	methods    []string // "" is a method that no condition names
	countries  []string // ISO 3166-1 alpha-2 codes
	moments    []time.Time
	amounts    map[money.Currency][]int64
}

func name(was, next *Set, now time.Time) named {
	n := named{methods: []string{""}, countries: []string{""}, moments: []time.Time{now}, amounts: map[money.Currency][]int64{}}
	for _, s := range []*Set{was, next} {
		for i := range s.Rules {
			n.rule(&s.Rules[i], now)
		}
	}
	for _, c := range append([]money.Currency{"USD", "EUR"}, slices.Collect(money.Circulating())...) {
		if !slices.Contains(n.currencies, c) {
			n.currencies = append(n.currencies, c)
			break
		}
	}
	n.currencies, n.methods, n.countries = unique(n.currencies), unique(n.methods), unique(n.countries)
	slices.SortFunc(n.moments, time.Time.Compare)
	n.moments = slices.CompactFunc(n.moments, time.Time.Equal)
	for _, c := range n.currencies {
		for amount := int64(100); amount <= 1_000_000_000; amount *= 10 {
			n.amounts[c] = append(n.amounts[c], amount)
		}
		n.amounts[c] = unique(n.amounts[c])
	}
	return n
}

func unique[T money.Currency | string | int64](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

func (n *named) rule(r *Rule, now time.Time) {
	n.currencies = append(n.currencies, r.Currencies...)
	n.methods = append(n.methods, r.Methods...)
	n.countries = append(n.countries, r.Countries...)
	for _, t := range []time.Time{r.From, r.Until} {
		if t.After(now) {
			n.moments = append(n.moments, t)
		}
	}
	if len(r.Currencies) != 1 {
		return // the rule has no amounts
	}
	add := func(amounts ...int64) {
		for _, a := range amounts {
			if a > 0 {
				n.amounts[r.Currencies[0]] = append(n.amounts[r.Currencies[0]], a)
			}
		}
	}
	most := int64(0)
	if r.Maximum != nil {
		most = *r.Maximum
	}
	add(r.Amount.From, r.Amount.Below-1, r.Minimum, most)
	for _, t := range r.Tiers {
		add(t.From, t.Below-1, t.Fixed)
		if t.BasisPoints > 0 { // amounts at which the percentage reaches a limit
			add(scale(r.Minimum, t.BasisPoints), scale(most, t.BasisPoints))
		}
	}
}

// scale returns the amount for which the given basis points yield the fee. It returns 0 if
// the computation would overflow.
func scale(fee, points int64) int64 {
	if fee > math.MaxInt64/whole {
		return 0
	}
	return fee * whole / points
}

// prober computes the fees of sample payments.
type prober struct {
	was, next *Set
	named
	seen  map[[3]string]bool
	found []LargeChange
}

// region samples up to limit payments that a rule matches.
func (p *prober) region(r *Rule, limit int) {
	all, methods, countries, currencies := r.Kinds, r.Methods, r.Countries, r.Currencies
	if len(all) == 0 {
		all = kinds[:]
	}
	if len(methods) == 0 {
		methods = p.methods
	}
	if len(countries) == 0 {
		countries = p.countries
	}
	if len(currencies) == 0 {
		currencies = p.currencies
	}
	moments := slices.DeleteFunc(slices.Clone(p.moments), func(t time.Time) bool { return !r.inEffect(t) })
	for _, currency := range currencies {
		amounts := slices.DeleteFunc(slices.Clone(p.amounts[currency]), func(a int64) bool { return !r.Amount.has(a) })
		total := len(all) * len(methods) * len(countries) * len(moments) * len(amounts)
		tries := min(total, max(1, limit/len(currencies)))
		for i := range tries {
			// Steps of a prime that does not divide the total visit each sample once, spread evenly.
			n := i
			if tries < total {
				const prime = 2_147_483_647
				n = int(uint64(i) * prime % uint64(total))
			}
			take := func(of int) int { k := n % of; n /= of; return k }
			p.try(Payment{
				Kind: all[take(len(all))], Amount: amounts[take(len(amounts))], Currency: currency,
				Method: methods[take(len(methods))], Country: countries[take(len(countries))], At: moments[take(len(moments))],
			})
		}
	}
}

func (p *prober) try(pay Payment) {
	was, next := p.was.match(&pay), p.next.match(&pay)
	before, after := was.charge(pay.Amount).fee, next.charge(pay.Amount).fee
	if !isLarge(before, after, pay.Amount) || len(p.found) == maxLarge {
		return
	}
	key := [3]string{was.ID, next.ID, string(pay.Currency)}
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	p.found = append(p.found, LargeChange{Payment: pay, Was: was.ID, Next: next.ID, Before: before, After: after, Pointer: next.pointer()})
}
