package fee

import (
	"math"
	"slices"
	"time"
)

// tiers reads the tiers of a rule.
func (d *decoder) tiers(r *draft) {
	list := r.at + "/tiers"
	var tiers []Tier
	var bounds []bounds
	read := d.in.Array(func(i int) {
		if i >= MaxTiers {
			d.beyond(list, i, MaxTiers, "tiers")
			return
		}
		t, b := d.tier(at(list, i))
		tiers, bounds = append(tiers, t), append(bounds, b)
	})
	switch {
	case !read:
		return
	case len(tiers) == 0:
		d.faultAt(list, EmptyRange, "must have a tier")
		return
	}
	r.Tiers = tiers
	d.contiguous(list, tiers, bounds)
}

// bounds records which limits of a tier are present, and whether both are valid.
type bounds struct{ from, below, read bool }

// tier reads a tier.
func (d *decoder) tier(pointer string) (t Tier, b bounds) {
	points := false
	read := d.span(&t.Span, tierMembers, func(member string) bool {
		switch member {
		case "basisPoints":
			points = true
			t.BasisPoints, _ = d.in.Int(0, whole)
		case "fixed":
			t.Fixed, _ = d.in.Int(0, math.MaxInt64)
		default:
			return false
		}
		return true
	}, &b)
	if read || b.from || b.below || points { // the value is an object
		d.in.Require(pointer, "from", b.from)
		d.in.Require(pointer, "basisPoints", points)
	}
	b.read = read && b.from
	return t, b
}

// contiguous reports gaps and overlaps between tiers. The first tier must start at 0 and
// the last one must be unlimited.
func (d *decoder) contiguous(list string, tiers []Tier, given []bounds) {
	last := len(tiers) - 1
	for i, t := range tiers {
		here := at(list, i)
		switch {
		case i == last && given[i].below:
			d.faultAt(here+"/below", TierNotOpen, "must be absent: the last tier has no upper limit")
		case i < last && given[i].read && !given[i].below:
			d.faultAt(here, TierOpen, "must have below: only the last tier has no upper limit")
		}
		switch {
		case !given[i].read:
		case i == 0 && t.From != 0:
			d.faultAt(here+"/from", TierGap, "must be 0, the start of the first tier")
		case i == 0 || !given[i-1].read || !given[i-1].below:
		case t.From > tiers[i-1].Below:
			d.faultAt(here+"/from", TierGap, "must be %d, the end of the previous tier: the tiers leave a gap", tiers[i-1].Below)
		case t.From < tiers[i-1].Below:
			d.faultAt(here+"/from", TierOverlap, "must be %d, the end of the previous tier: the tiers overlap", tiers[i-1].Below)
		}
	}
}

// check validates the members of a rule against each other.
func (d *decoder) check(r *draft) {
	if r.tierList {
		for _, member := range []string{"basisPoints", "fixed"} {
			if r.given[member] {
				d.faultAt(r.at+"/"+member, TiersAndRate, "must be absent: each tier of the rule has its own value")
			}
		}
	}
	if r.Maximum != nil && r.Minimum > *r.Maximum {
		d.faultAt(r.at+"/minimum", MinAboveMax, "must be at most the maximum, which is %d", *r.Maximum)
	}
	if !r.From.IsZero() && !r.Until.IsZero() && !r.From.Before(r.Until) {
		d.faultAt(r.at+"/effectiveUntil", EmptyPeriod, "must be after effectiveFrom, which is %s", r.From.Format(time.RFC3339))
		r.unread = true
	}
	if len(r.Currencies) != 1 && !r.currencyUnread {
		d.checkCurrency(r)
	}
}

// checkCurrency reports amounts in a rule that does not name exactly one currency. An
// amount in minor units needs one currency.
func (d *decoder) checkCurrency(r *draft) {
	need := func(there bool, member string) {
		if there {
			d.faultAt(r.at+"/"+member, NeedsCurrency, "is an amount, so the rule must have a condition with exactly one currency")
		}
	}
	need(r.Amount != (Span{}), "conditions/amount")
	need(!r.tierList && r.rate.Fixed > 0, "fixed")
	need(r.Minimum > 0, "minimum")
	need(r.Maximum != nil && *r.Maximum > 0, "maximum")
	need(r.tierList && len(r.Tiers) > 1, "tiers")
	if !r.tierList || len(r.Tiers) > 1 {
		return
	}
	need(slices.ContainsFunc(r.Tiers, func(t Tier) bool { return t.Fixed > 0 }), "tiers/0/fixed")
}

// ambiguous reports rules of the same priority that can match the same payment at the same
// time. The rules are sorted.
func (d *decoder) ambiguous() {
	rules := d.set.Rules
	for i := range rules {
		for j := i + 1; j < len(rules) && rules[j].Priority == rules[i].Priority; j++ {
			a, b := &rules[i], &rules[j]
			if !a.overlaps(b) {
				continue
			}
			if a.index > b.index {
				a, b = b, a
			}
			d.faultAt(b.pointer(), AmbiguousRules, "can match the same payments as %s at the same time, and has the same priority, %d", a.pointer(), a.Priority)
		}
	}
}

// overlaps reports whether a payment can match both rules.
func (r *Rule) overlaps(o *Rule) bool {
	return intersect(r.Kinds, o.Kinds) && intersect(r.Currencies, o.Currencies) && intersect(r.Methods, o.Methods) &&
		intersect(r.Countries, o.Countries) && r.Amount.overlaps(o.Amount) &&
		(r.Until.IsZero() || o.From.Before(r.Until)) && (o.Until.IsZero() || r.From.Before(o.Until))
}

// intersect reports whether two sorted lists have a common value. An empty list matches every
// value.
func intersect[T ~string](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			return true
		case a[0] < b[0]:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}
