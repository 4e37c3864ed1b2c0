package audit

import (
	"errors"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// feeRules verifies the versions of the fee rules and caches recently used versions.
type feeRules struct {
	*audit
	sets   map[int64]*ruleSet
	oldest int64 // lowest version that a sale names
}

type ruleSet struct {
	set         *fee.Set
	wrong       string
	from, until time.Time // time in force; zero until: still in force
}

// overlap is how long a sale may still use the previous version after an activation. The
// sale's transaction may have started before the activation.
const overlap = 2 * time.Second

// inForce reports whether a sale at a time may use the version.
func (r *ruleSet) inForce(at time.Time) bool {
	return !at.Before(r.from) && (r.until.IsZero() || !at.After(r.until.Add(overlap)))
}

// maxRules is the maximum number of cached versions.
const maxRules = 64

// rule returns a version of the fee rules from the cache or the database.
func (v *feeRules) rule(version int64) (*ruleSet, error) {
	if known := v.sets[version]; known != nil {
		return known, nil
	}
	set, found, err := v.records.FeeRules(version)
	out := &ruleSet{set: set}
	switch {
	case errors.Is(err, ErrFeeRules):
		out.wrong = "rules that differ from the activated version"
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

// ErrFeeRules means that the text of a version of the fee rules is unreadable or does not
// match its digest.
var ErrFeeRules = errors.New("the fee rules were changed outside the service")

// chain verifies the versions of the fee rules and their hash chain. The service may start
// a new chain when the ledger is empty and its key was lost. chain accepts a new chain
// only if no sale uses an earlier version.
func (v *feeRules) chain() error {
	clean := v.tally.clone()
	last, chained := wallet.Rules{}, true // chained: the last version matches its seal
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
				return ruleFinding(r, "the content that key "+quote(r.KeyID)+" sealed", r.MAC.String(), "does not match its seal.")
			})
			if len(r.Faults) > 0 {
				v.fail(feeCrosscheck, ruleFinding(r, "valid values", list(r.Faults), "has values that the service never writes."))
			}
			if v.impossible(r.At) {
				v.fail(feeCrosscheck, ruleFinding(r, "a time in the past", stamp(r.At), "was activated at an impossible time."))
			}
			if r.Number != last.Number+1 || r.Previous != last.MAC || !chained {
				v.fail(feeCrosscheck, ruleFinding(r, "the one after version "+integer(last.Number), "another version", "is not linked to the previous version."))
			}
			if err := v.text(r); err != nil {
				return err
			}
			last, chained = r.Rules, intact
		}
		if last.Number <= after {
			return nil // no next page; the count reveals rows that were not read
		}
		after = last.Number
	}
}

// text checks that the text of a version matches its digest. The verification of a user
// skips this check: it reads only the versions that the user's sales reference.
func (v *feeRules) text(r *Rules) error {
	if v.only != "" {
		return nil
	}
	stored, err := v.rule(r.Number)
	if err == nil && stored.wrong != "" {
		v.fail(feeCrosscheck, ruleFinding(r, "the activated rules", stored.wrong, "differs from the rules that were activated."))
	}
	return err
}

func ruleFinding(r *Rules, expected, actual, what string) Finding {
	return Finding{Expected: expected, Actual: actual, Message: "Version " + integer(r.Number) + " of the fee rules " + what}
}
