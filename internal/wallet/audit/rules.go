package audit

import (
	"errors"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// feeRules verifies the versions of the fee rules, and keeps those that were used last.
type feeRules struct {
	*audit
	sets   map[int64]*ruleSet
	oldest int64 // that a sale names
}

type ruleSet struct {
	set         *fee.Set
	wrong       string
	from, until time.Time // when they were in force; a zero until: they are
}

// overlap is for how long after an activation a sale that began before may still be
// charged by the version before.
const overlap = 2 * time.Second

// inForce reports whether a sale of a moment may be charged by the version.
func (r *ruleSet) inForce(at time.Time) bool {
	return !at.Before(r.from) && (r.until.IsZero() || !at.After(r.until.Add(overlap)))
}

// maxRules bounds how many versions are kept.
const maxRules = 64

// rule returns a version of the fee rules.
func (v *feeRules) rule(version int64) (*ruleSet, error) {
	if known := v.sets[version]; known != nil {
		return known, nil
	}
	set, found, err := v.records.FeeRules(version)
	out := &ruleSet{set: set}
	switch {
	case errors.Is(err, ErrFeeRules):
		out.wrong = "rules that are not what was activated"
	case err != nil:
		return nil, err
	case !found:
		out.wrong = "no rules of that version"
	default:
		versions, err := v.records.FeeVersions(version-1, 2)
		if err != nil {
			return nil, err
		}
		for i := range versions {
			switch versions[i].Number {
			case version:
				out.from = versions[i].At
			case version + 1:
				out.until = versions[i].At
			}
		}
	}
	if len(v.sets) >= maxRules || v.sets == nil {
		v.sets = map[int64]*ruleSet{}
	}
	v.sets[version] = out
	return out, nil
}

// ErrFeeRules means that a version of the fee rules is not what was activated.
var ErrFeeRules = errors.New("the fee rules were changed behind the service's back")

// chain examines the versions of the fee rules: whether each is what was
// activated, upon the one before it. A version that the service made upon none, when
// the ledger was empty and its key lost, starts a new chain, unless a user was
// charged by one before.
func (v *feeRules) chain() error {
	clean := v.tally.clone()
	last, chained := wallet.Rules{}, true // chained: the last one is what was sealed
	for after := int64(-1 << 63); ; {
		rows, err := v.records.FeeVersions(after, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			r := &rows[i]
			v.versions++
			intact, err := v.sealer.Intact(&r.Rules)
			if intact && r.Previous == (wallet.Hash{}) && r.Number == last.Number+1 && r.Number > 1 && v.oldest >= r.Number {
				v.tally, last.MAC, chained = clean.clone(), wallet.Hash{}, true
			}
			v.sealed(feeCrosscheck, intact, err, r.KeyID, func() Finding {
				return ruleFinding(r, "what key "+quote(r.KeyID)+" sealed", r.MAC.String(), "is not what was activated.")
			})
			if len(r.Faults) > 0 {
				v.fail(feeCrosscheck, ruleFinding(r, "values that the service writes", list(r.Faults), "holds what no column of its should."))
			}
			if v.impossible(r.At) {
				v.fail(feeCrosscheck, ruleFinding(r, "a time of the past", stamp(r.At), "was activated at an impossible time."))
			}
			if r.Number != last.Number+1 || r.Previous != last.MAC || !chained {
				v.fail(feeCrosscheck, ruleFinding(r, "the one after version "+integer(last.Number), "another", "was not activated upon the one before it."))
			}
			if err := v.text(r); err != nil {
				return err
			}
			last, chained = r.Rules, intact
		}
		if last.Number <= after {
			return nil // it leads nowhere; those behind it are counted
		}
		after = last.Number
	}
}

// text examines whether a version's text matches its seal. Of those
// that a user's sales do not name it does not matter.
func (v *feeRules) text(r *Rules) error {
	if v.only != "" {
		return nil
	}
	stored, err := v.rule(r.Number)
	if err == nil && stored.wrong != "" {
		v.fail(feeCrosscheck, ruleFinding(r, "what was activated", stored.wrong, "differs from the rules that were activated."))
	}
	return err
}

func ruleFinding(r *Rules, expected, actual, what string) Finding {
	return Finding{Expected: expected, Actual: actual, Message: "Version " + integer(r.Number) + " of the fee rules " + what}
}
