package refresh

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"assay/internal/event"
)

// JobOutcome is the outcome of an ended job.
type JobOutcome string

// The outcomes of a job. A cancelled job is partial if it priced something, otherwise failed.
const (
	JobComplete JobOutcome = "complete" // all items and all markets
	JobPartial  JobOutcome = "partial"  // some items or markets are missing
	JobFailed   JobOutcome = "failed"   // nothing was priced, and an error occurred
)

// Reasons of gaps. Skip reasons and market outcomes are also reasons of gaps.
const (
	GapFailed    = "failed"
	GapCancelled = "cancelled"
)

// outcomeWithGaps returns the outcome of the job if it lacks the given markets.
func (j *Job) outcomeWithGaps(markets []event.MarketGap) JobOutcome {
	switch {
	case j.State == Failed, j.State == Cancelled && j.Counts.Updated+j.Counts.NoQuote == 0:
		return JobFailed
	case j.State == Cancelled, len(markets) > 0, len(j.Counts.Gaps()) > 0:
		return JobPartial
	default:
		return JobComplete
	}
}

// Gaps returns the number of due items without a result, by reason.
func (c *Counts) Gaps() []event.ItemGap {
	due := c.Total - c.SkippedTTL - c.SkippedNoSales
	var gaps []event.ItemGap
	for _, g := range []event.ItemGap{
		{Reason: GapFailed, Items: c.Failed},
		{Reason: SkipBackoff, Items: c.SkippedBackoff},
		{Reason: SkipBudget, Items: c.SkippedBudget},
		{Reason: SkipPaused, Items: c.SkippedPaused},
		{Reason: GapCancelled, Items: c.Cancelled},
	} {
		if g.Items > 0 {
			g.Share = share(g.Items, due)
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// Gaps returns the items and markets that a job lacks. The lists are never nil.
func (j *Job) Gaps() event.Gaps {
	return event.Gaps{
		Items:   append([]event.ItemGap{}, j.Counts.Gaps()...),
		Markets: append([]event.MarketGap{}, j.MarketGaps...),
	}
}

// share returns part divided by whole, rounded to four decimal places and at least 0.0001.
func share(part, whole int64) float64 {
	return max(math.Round(float64(part)/float64(max(whole, 1))*1e4)/1e4, 1e-4)
}

// marketGaps returns the markets that a job lacks completely or in part. It omits providers
// of the background fetch.
func (a *applier) marketGaps(units []FetchUnit, outcomes map[UnitMarket]MarketFetch) []event.MarketGap {
	type market struct{ provider, key string }
	type gap struct {
		market
		reason string
	}
	all, missing := map[market]int64{}, map[gap]map[string]int64{} // missing: weights by error
	for i := range units {
		u := &units[i]
		src, configured := a.providers[u.Provider]
		weight := int64(1) // a file counts once
		if u.File == "" {
			weight = u.Size
			if weight == 0 || configured && InBackground(src.Describe()) {
				continue
			}
		}
		ids := a.requestedMarkets(u)
		if !configured {
			ids = []int64{0}
		}
		for _, id := range ids {
			m := market{u.Provider, a.marketsByID[id].Key}
			all[m] += weight
			if reason, detail := u.gap(id, outcomes); reason != "" {
				g := gap{m, reason}
				if missing[g] == nil {
					missing[g] = map[string]int64{}
				}
				missing[g][detail] += weight
			}
		}
	}
	var out []event.MarketGap
	for g, errors := range missing {
		var n int64
		for _, weight := range errors {
			n += weight
		}
		out = append(out, event.MarketGap{
			Provider: g.provider, Market: g.key, Reason: g.reason, Share: share(n, all[g.market]), Detail: mostFrequent(errors),
		})
	}
	slices.SortFunc(out, func(a, b event.MarketGap) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Market, b.Market), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// mostFrequent returns the most frequent error, with the number of other errors.
func mostFrequent(errors map[string]int64) string {
	first := slices.MinFunc(slices.Collect(maps.Keys(errors)), func(a, b string) int {
		return cmp.Or(cmp.Compare(errors[b], errors[a]), cmp.Compare(a, b))
	})
	switch others := len(errors) - 1; others {
	case 0:
		return first
	case 1:
		return first + " (and 1 other error)"
	default:
		return fmt.Sprintf("%s (and %d other errors)", first, others)
	}
}

// text describes an outcome in the error of an item.
func (o Outcome) text() string {
	switch o {
	case OutcomeSilent:
		return "not in the response"
	case OutcomeQuarantined:
		return "in quarantine"
	default:
		return string(o)
	}
}

// gap returns why a unit's job lacks a market, or "".
func (u *FetchUnit) gap(market int64, outcomes map[UnitMarket]MarketFetch) (reason, detail string) {
	switch outcome := outcomes[UnitMarket{Unit: u.ID, Market: market}].Outcome; {
	case u.State == UnitCancelled:
		return GapCancelled, ""
	case u.skipped():
		return u.skipReason(), u.Error
	case !u.isUsable():
		return GapFailed, u.Error
	case u.File == "" && slices.Contains(u.Silent, market):
		return string(OutcomeSilent), ""
	case outcome == OutcomeSilent, outcome == OutcomeQuarantined:
		return string(outcome), ""
	default:
		return "", ""
	}
}
