package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/view"
)

// runView is a job with the values that the page shows.
type runView struct {
	view.Job
	Live      bool
	Planned   bool // the number of items is known
	Percent   int64
	Stages    []stage
	Tiles     []tile
	Segments  []segment
	Took      string // duration until now or until its end
	Left      string // remaining time; empty: unknown
	Providers []providerCount
	Yield     []providerCount // number of quotes by market
	Later     []providerCount // number of names deferred by a provider's budget
	Badge     badge
	Gaps      []view.Gap // gaps of an ended run
	Announce  string     // text for screen readers, which changes every ten percent
}

// stage is one stage of a refresh.
type stage struct {
	Label string
	State string // done, now or todo
}

// tile is one count of a run's items.
type tile struct {
	State string // state of the counted items
	Label string
	Count int64
	Note  string // breakdown of the count
}

// segment is a part of a bar. All segments start at the left end, and longer ones are behind
// shorter ones. Therefore only widths change, which browsers animate smoothly.
type segment struct {
	Name  string
	Width string // right end of the segment in percent of the bar
}

type providerCount struct {
	Provider string
	Count    int64
}

// newRunView converts a job. The remaining seconds are nil if unknown.
func newRunView(job view.Job, etaSeconds *int64, now time.Time) *runView {
	v := &runView{Job: job, Live: isLive(job.State), Planned: job.TotalItems > 0 || !isLive(job.State)}
	v.Stages = stagesOf(job)
	v.Tiles = tilesOf(job)
	v.Segments = segmentsOf(job)
	if job.TotalItems > 0 {
		v.Percent = (job.TotalItems - job.PendingItems) * 100 / job.TotalItems
	}
	if !v.Live {
		v.Percent = 100
	}
	v.Took = tookOf(job, now)
	if v.Live && etaSeconds != nil {
		v.Left = "about " + humanDuration(time.Duration(*etaSeconds)*time.Second)
	}
	v.Providers = providersOf(job.Usage)
	for _, s := range job.Providers {
		for _, m := range s.Markets {
			v.Yield = append(v.Yield, providerCount{Provider: s.Provider + "/" + m.Market, Count: m.Quotes})
		}
		if s.DeferredNames > 0 {
			v.Later = append(v.Later, providerCount{Provider: s.Provider, Count: s.DeferredNames})
		}
	}
	v.Badge = runBadge(job.State, job.Outcome)
	if !v.Live {
		v.Gaps = view.GapsOf(job.Gaps)
	}
	v.Announce = announcement(v)
	return v
}

func isLive(state string) bool { return state == "queued" || state == "running" }

func stagesOf(job view.Job) []stage {
	names := []string{"plan", "fetch", "estimate", "apply"}
	labels := []string{"Plan", "Fetch", "Estimate", "Apply"}
	current := slices.Index(names, job.Stage)
	if job.Stage == "done" {
		current = len(names)
	}
	stages := make([]stage, len(names))
	for i := range names {
		state := "todo"
		if i < current {
			state = "done"
		}
		if i == current && isLive(job.State) {
			state = "now"
		}
		stages[i] = stage{Label: labels[i], State: state}
	}
	return stages
}

func tilesOf(job view.Job) []tile {
	skipped := job.SkippedItems
	tiles := []tile{
		{State: "updated", Label: "Updated", Count: job.UpdatedItems, Note: formatCount(job.ChangedItems) + " changed"},
		{State: "skipped", Label: "Skipped", Count: skipped.Total(), Note: skippedNote(skipped)},
		{State: "noQuote", Label: "No quote", Count: job.NoQuoteItems},
		{State: "failed", Label: "Failed", Count: job.FailedItems},
	}
	if isLive(job.State) {
		return append(tiles, tile{State: "pending", Label: "Waiting", Count: job.PendingItems})
	}
	return append(tiles, tile{State: "cancelled", Label: "Cancelled", Count: job.CancelledItems})
}

// skippedNote lists the reasons with a count above zero.
func skippedNote(s view.Skipped) string {
	var parts []string
	for _, r := range []struct {
		n    int64
		text string
	}{{s.TTL, "recent"}, {s.NoSales, "without sales"}, {s.Budget, "without budget"}, {s.Paused, "paused"}, {s.Backoff, "backing off"}} {
		if r.n > 0 {
			parts = append(parts, formatCount(r.n)+" "+r.text)
		}
	}
	return strings.Join(parts, ", ")
}

func segmentsOf(job view.Job) []segment {
	return segments(job.TotalItems,
		part{"updated", job.UpdatedItems}, part{"skipped", job.SkippedItems.Total()},
		part{"noQuote", job.NoQuoteItems}, part{"failed", job.FailedItems}, part{"cancelled", job.CancelledItems})
}

// part is a share of a total.
type part struct {
	name  string
	count int64
}

// segments converts parts to segments. The longest segment comes first, so it is drawn behind the
// others.
func segments(total int64, parts ...part) []segment {
	laid := make([]segment, len(parts))
	var end int64
	for i, p := range parts {
		end += p.count
		laid[len(parts)-1-i] = segment{Name: p.name, Width: percent(end, total)}
	}
	return laid
}

// percent formats a share in percent with three decimals, for positions in drawings.
func percent(n, total int64) string {
	if total <= 0 {
		return "0%"
	}
	thousandths := n * 100_000 / total
	return fmt.Sprintf("%d.%03d%%", thousandths/1000, thousandths%1000)
}

func tookOf(job view.Job, now time.Time) string {
	if job.StartedAt == nil {
		return "–"
	}
	end := now
	if job.FinishedAt != nil {
		end = *job.FinishedAt
	}
	took := end.Sub(*job.StartedAt)
	if isLive(job.State) {
		took = took.Truncate(time.Second)
	}
	return humanDuration(max(took, 0))
}

// providersOf lists the providers with requests, most requests first.
func providersOf(usage view.Usage) []providerCount {
	list := make([]providerCount, 0, len(usage.ByProvider))
	for provider, n := range usage.ByProvider {
		list = append(list, providerCount{provider, n})
	}
	slices.SortFunc(list, func(a, b providerCount) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.Provider, b.Provider)
	})
	return list
}

func announcement(v *runView) string {
	run := "Run " + v.ID
	switch {
	case !v.Live:
		return fmt.Sprintf("%s %s: %s updated, %s failed.", run, strings.ToLower(v.Badge.Text),
			formatCount(v.UpdatedItems), formatCount(v.FailedItems))
	case !v.Planned:
		return run + " is being planned."
	}
	return run + " is running: " + strconv.FormatInt(v.Percent/10*10, 10) + " percent done."
}
