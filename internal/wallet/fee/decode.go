package fee

import (
	"io"
	"math"
	"slices"
	"strconv"

	"assay/internal/fault"
	"assay/internal/strictjson"
)

// Limits of a document with fee rules.
const (
	MaxBytes    = 1 << 20
	MaxRules    = 500
	MaxTiers    = 50
	MaxValues   = 300 // values per condition
	MaxID       = 64  // bytes of an id or payment method
	MaxPriority = 1_000_000
	maxFaults   = 1000
)

// Error codes for fee rules, in addition to those of strictjson.
const (
	TooLarge        = "too_large"
	TooMany         = "too_many"
	UnknownValue    = "unknown_value"
	UnknownCurrency = "unknown_currency"
	UnknownCountry  = "unknown_country"
	DuplicateValue  = "duplicate_value"
	DuplicateID     = "duplicate_id"
	ReservedID      = "reserved_id"
	InvalidName     = "invalid_name"
	NeedsCurrency   = "needs_one_currency"
	MinAboveMax     = "minimum_above_maximum"
	EmptyRange      = "empty_range"
	EmptyPeriod     = "empty_period"
	TiersAndRate    = "tiers_and_rate"
	TierGap         = "tier_gap"
	TierOverlap     = "tier_overlap"
	TierNotOpen     = "tier_not_open"
	TierOpen        = "tier_open_too_early"
	AmbiguousRules  = "ambiguous_rules"
)

// Member names of a document.
var (
	setMembers       = []string{"rules", "fallback"}
	fallbackMembers  = []string{"basisPoints", "basis", "rounding"}
	conditionMembers = []string{"kind", "paymentMethod", "currency", "country", "amount"}
	spanMembers      = []string{"from", "below"}
	tierMembers      = []string{"from", "below", "basisPoints", "fixed"}
	ruleMembers      = []string{
		"id", "priority", "conditions", "basisPoints", "fixed", "minimum", "maximum", "tiers",
		"basis", "rounding", "effectiveFrom", "effectiveUntil",
	}
)

// Decode reads and validates a set of rules. For invalid rules it returns a fault of kind
// Unprocessable that lists all errors with JSON pointers and codes. It returns read errors
// of r unchanged.
func Decode(r io.Reader) (*Set, error) {
	d := decoder{in: strictjson.NewDocumentReader(r, maxFaults), ids: map[string]int{}}
	var hasRules, hasFallback bool
	d.in.Object(setMembers, func(member string) bool {
		switch member {
		case "rules":
			hasRules = true
			d.in.Array(d.rule)
		case "fallback":
			hasFallback = true
			d.fallback()
		default:
			return false
		}
		return true
	})
	d.in.Require("", "rules", hasRules)
	d.in.Require("", "fallback", hasFallback)
	slices.SortFunc(d.set.Rules, byPriority)
	d.ambiguous()
	if err := d.in.Finish(); err != nil {
		return nil, refuse(err)
	}
	return &d.set, nil
}

// refuse converts an error of the JSON reader to the error of Decode.
func refuse(err error) error {
	f := fault.Of(err)
	if f == nil || (f.Kind != fault.Invalid && f.Kind != fault.TooLarge) {
		return err
	}
	out := fault.New(fault.Unprocessable, "invalid_fee_rules", "The fee rules are invalid; see errors. The active rules are unchanged.")
	out.Fields = f.Fields
	switch {
	case f.Kind == fault.TooLarge:
		out.Fields = []fault.Field{{Code: TooLarge, Detail: f.Detail}}
	case len(f.Fields) >= maxFaults:
		out.Detail += " There may be more."
	}
	return out
}

// decoder holds a set while it is read.
type decoder struct {
	in  *strictjson.Reader
	set Set
	ids map[string]int // index of the first rule with each id
}

// fault records an error for the last read value.
func (d *decoder) fault(code, format string, args ...any) {
	d.in.CodeAt(d.in.Pointer(), code, format, args...)
}

func (d *decoder) faultAt(pointer, code, format string, args ...any) {
	d.in.CodeAt(pointer, code, format, args...)
}

// at appends an index to a JSON pointer.
func at(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// draft is a rule while it is read. It records which members are present and which ones
// are invalid.
type draft struct {
	Rule
	at             string // JSON pointer
	rate           Tier   // rate of a rule without tiers
	tierList       bool
	given          map[string]bool // members that are present
	unread         bool            // a condition is invalid, so the payments that match the rule are unknown
	currencyUnread bool
}

// rule reads the rule at index i.
func (d *decoder) rule(i int) {
	if i >= MaxRules {
		d.beyond("/rules", i, MaxRules, "rules")
		return
	}
	r := draft{Rule: newRule(), at: at("/rules", i), given: map[string]bool{}}
	r.index = i
	if !d.in.Object(ruleMembers, func(member string) bool { return d.ruleMember(&r, member) }) {
		return
	}
	d.in.Require(r.at, "id", r.given["id"])
	d.in.Require(r.at, "priority", r.given["priority"])
	if !r.tierList {
		d.in.Require(r.at, "basisPoints", r.given["basisPoints"])
		r.Tiers = []Tier{r.rate}
	}
	d.check(&r)
	if !r.unread && r.given["priority"] {
		d.set.Rules = append(d.set.Rules, r.Rule)
	}
}

// beyond skips the elements after the maximum length of a list. It records the error once.
func (d *decoder) beyond(list string, i, most int, what string) {
	if i == most {
		d.in.CodeAt(list, TooMany, "must have at most %d %s", most, what)
	}
	d.in.Skip()
}

func newRule() Rule { return Rule{Basis: Gross, Rounding: HalfEven} }

func newFallback(points int64) Rule {
	r := newRule()
	r.ID, r.Tiers = FallbackID, []Tier{{BasisPoints: points}}
	return r
}

func (d *decoder) ruleMember(r *draft, member string) bool {
	r.given[member] = true
	switch member {
	case "id":
		d.id(r)
	case "priority":
		var ok bool
		r.Priority, ok = d.in.Int(0, MaxPriority)
		r.unread = r.unread || !ok
	case "conditions":
		ok := d.in.Object(conditionMembers, func(member string) bool { return d.condition(r, member) })
		r.unread = r.unread || !ok
	case "basisPoints":
		r.rate.BasisPoints, _ = d.in.Int(0, whole)
	case "fixed":
		r.rate.Fixed, _ = d.in.Int(0, math.MaxInt64)
	case "minimum":
		r.Minimum, _ = d.in.Int(0, math.MaxInt64)
	case "maximum":
		if n, ok := d.in.Int(0, math.MaxInt64); ok {
			r.Maximum = &n
		}
	case "tiers":
		r.tierList = true
		d.tiers(r)
	case "basis":
		r.Basis = choose(d, Gross, Gross, Net)
	case "rounding":
		r.Rounding = choose(d, HalfEven, HalfEven, HalfUp, Up, Down)
	case "effectiveFrom":
		r.From = d.moment(r)
	case "effectiveUntil":
		r.Until = d.moment(r)
	default:
		return false
	}
	return true
}

// fallback reads the fee for payments that match no rule. The fallback applies to every
// currency, so it has only a percentage.
func (d *decoder) fallback() {
	r := newFallback(0)
	given := false
	read := d.in.Object(fallbackMembers, func(member string) bool {
		switch member {
		case "basisPoints":
			given = true
			r.Tiers[0].BasisPoints, _ = d.in.Int(0, whole)
		case "basis":
			r.Basis = choose(d, Gross, Gross, Net)
		case "rounding":
			r.Rounding = choose(d, HalfEven, HalfEven, HalfUp, Up, Down)
		default:
			return false
		}
		return true
	})
	if read {
		d.in.Require("/fallback", "basisPoints", given)
	}
	d.set.Fallback = r
}

func (d *decoder) id(r *draft) {
	id, ok := d.in.Text(1, MaxID)
	switch {
	case !ok:
		return
	case id == FallbackID:
		d.fault(ReservedID, "must not be %q, the id of the fallback", FallbackID)
	case !isName(id):
		d.fault(InvalidName, "must consist of letters, digits, or the characters . _ -")
	default:
		if first, again := d.ids[id]; again {
			d.fault(DuplicateID, "is already the id of /rules/%d", first)
		} else {
			d.ids[id] = r.index
		}
	}
	r.ID = id
}

// isName reports whether text is a valid id or payment method.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i] | 0x20
		if (c < 'a' || c > 'z') && (text[i] < '0' || text[i] > '9') && text[i] != '.' && text[i] != '_' && text[i] != '-' {
			return false
		}
	}
	return text != "" && len(text) <= MaxID
}
