package refresh

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"
)

// candidate is a name that can be requested from a provider with a budget, with its priority.
type candidate struct {
	PlannedName
	app         int32
	item        int64 // id of the first item with this name
	value       int64 // value of all its items in inventories, in micro-units
	requestedAt time.Time
	queuedAt    time.Time
	hi, lo      uint64 // priority: the product of value and staleness in 128 bits
}

// byPriority returns the distinct names of a plan by priority, the highest first. The
// priority is the value in inventories times the time since the provider was last queried for
// the name. A name without a request has the longest time. So has a name whose last request
// is in the future, because the clock has been set back since. byPriority omits names that
// were requested less than minAge ago.
func byPriority(items []CandidateName, now time.Time, minAge time.Duration) []candidate {
	var out []candidate
	for i := range items {
		w := &items[i]
		age := now.Sub(w.RequestedAt)
		if age >= 0 && age < minAge {
			continue
		}
		if n := len(out); n == 0 || out[n-1].app != w.AppID || out[n-1].Name != w.Name {
			out = append(out, candidate{PlannedName: w.PlannedName, app: w.AppID, item: w.Item, requestedAt: w.RequestedAt})
		}
		last := &out[len(out)-1]
		last.value = addSaturated(last.value, mulSaturated(int64(w.Price), w.Amount))
		if last.queuedAt.IsZero() || !w.QueuedAt.IsZero() && w.QueuedAt.Before(last.queuedAt) {
			last.queuedAt = w.QueuedAt
		}
	}
	for i := range out {
		w := &out[i]
		stale := now.Unix()
		if !w.requestedAt.IsZero() && !w.requestedAt.After(now) {
			stale = int64(now.Sub(w.requestedAt) / time.Second)
		}
		// Adding 1 gives a priority to names that are in no inventory.
		w.hi, w.lo = bits.Mul64(uint64(w.value)+1, uint64(stale)+1)
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.hi, a.hi), cmp.Compare(b.lo, a.lo), cmp.Compare(a.item, b.item))
	})
	return out
}

// byAge returns the distinct names of a plan with missing prices. The name with the longest
// missing price comes first.
func byAge(items []CandidateName, now time.Time, minAge time.Duration) []candidate {
	out := byPriority(items, now, minAge)
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(a.queuedAt.Compare(b.queuedAt), cmp.Compare(a.item, b.item))
	})
	return out
}

// mulSaturated multiplies two non-negative numbers. It returns the largest number if the
// product overflows.
func mulSaturated(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// addSaturated adds two non-negative numbers. It returns the largest number if the sum
// overflows.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
