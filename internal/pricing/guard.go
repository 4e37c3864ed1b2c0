package pricing

import (
	"time"

	"assay/internal/money"
)

const (
	fastMove      = 2 // beyond this factor within fastMoveTime, on fewer than manyMarkets
	anyMove       = 3 // beyond this factor, ever
	fastMoveTime  = 24 * time.Hour
	manyMarkets   = 5
	confirmAfter  = 30 * time.Minute
	confirmWithin = 5 // the part of the candidate that a second run may differ by: a fifth
)

// guard holds Estimated, made of n quotes, against the last price and decides
// what becomes the price (step 6). It reports whether the move is suspect.
//
// A suspect price is taken under Flag, but held back under Hold or when thin.
// A held price is released, and no longer suspect, once an estimate at least 30
// minutes after it was first held agrees with it within 20 %; one that
// disagrees takes its place and starts the wait again. The first estimate that
// is not suspect against the last price ends it. With no last price there is
// nothing to compare with: nothing is suspect.
func (e *Estimator) guard(now time.Time, n int, last Last, into *Estimate) bool {
	into.Price = into.Estimated
	if !suspicious(now, into.Estimated, into.UsedMarkets, last) {
		return false
	}
	if e.policy.Guard != Hold && n >= fewestForFilter {
		return true
	}
	into.Candidate, into.CandidateAt = into.Estimated, now
	if at := stored(last.CandidateAt); agrees(into.Estimated, last.Candidate) && !at.After(now) {
		if now.Sub(at) >= confirmAfter {
			into.Candidate, into.CandidateAt = 0, time.Time{}
			return false
		}
		into.Candidate, into.CandidateAt = last.Candidate, last.CandidateAt
	}
	into.Price = last.Price
	return true
}

// suspicious reports whether price, made of so many quotes, moved too far from
// the last one.
func suspicious(now time.Time, price money.Micro, markets int, last Last) bool {
	if last.Price <= 0 {
		return false
	}
	low, high := min(price, last.Price), max(price, last.Price)
	if high > low*anyMove {
		return true
	}
	at := stored(last.UpdatedAt)
	withinADay := at.IsZero() || now.Sub(at) <= fastMoveTime
	return withinADay && markets < manyMarkets && high > low*fastMove
}

// agrees reports whether price confirms a candidate; 0 is no candidate.
func agrees(price, candidate money.Micro) bool {
	diff := max(price-candidate, candidate-price)
	return candidate > 0 && diff*confirmWithin <= candidate
}
