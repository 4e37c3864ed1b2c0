package prices

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
)

// Entry is an item with its price.
type Entry struct {
	ID    int64 // of the item
	Key   catalog.Key
	Price Price
}

// Filter chooses items of one game. A zero field other than AppID chooses all.
type Filter struct {
	AppID        int32
	Words        Words
	ByStatus     bool // only those of Status
	Status       pricing.Status
	Min, Max     money.Micro
	ChangedSince time.Time // the price changed then or later
	CheckedSince time.Time // it was confirmed then or later
	Held         bool      // a suspicious new price waits for confirmation
	// StaleBefore is when the oldest price that is not stale was confirmed.
	StaleBefore time.Time
}

// Order is how a list is ordered: by a value, and by name and phase among equals.
type Order struct {
	By         Value
	Descending bool // the values; names ascend in any case
}

// Value is what a list is ordered by.
type Value uint8

// The values.
const (
	ByName Value = iota // none: only by name and phase
	ByPrice
	ByStatus // as of a Filter's StaleBefore
	ByChange // when the price changed
)

// Place is where an item stands in an order.
type Place struct {
	Value       int64 // 0 by name
	Name, Phase string
}

// compare is negative where a comes before b.
func (o Order) compare(a, b *Place) int {
	switch c := cmp.Compare(a.Value, b.Value); {
	case c != 0 && o.Descending:
		return -c
	case c != 0:
		return c
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Phase, b.Phase))
}

// PlaceOf returns the place of an entry; stale prices are those confirmed before.
func (o Order) PlaceOf(e *Entry, staleBefore time.Time) Place {
	p := Place{Name: e.Key.Name, Phase: e.Key.Phase}
	switch o.By {
	case ByPrice:
		p.Value = int64(e.Price.Amount)
	case ByStatus:
		p.Value = int64(Current(e.Price.Amount, e.Price.Status, e.Price.CheckedAt, staleBefore))
	case ByChange:
		p.Value = micros(e.Price.UpdatedAt)
	}
	return p
}

// Sort orders entries.
func (o Order) Sort(all []Entry, staleBefore time.Time) {
	slices.SortFunc(all, func(a, b Entry) int {
		x, y := o.PlaceOf(&a, staleBefore), o.PlaceOf(&b, staleBefore)
		return o.compare(&x, &y)
	})
}

// Current is the status of the last estimate, or stale where the price was confirmed
// before a time: no run has found a price since.
func Current(price money.Micro, status pricing.Status, checked, staleBefore time.Time) pricing.Status {
	if price > 0 && status < pricing.Stale && checked.Before(staleBefore) {
		return pricing.Stale
	}
	return status
}

// List returns the first items with a price that pass the filter, up to a limit, in an
// order; after is the place that they come after, nil is the beginning. They are never
// older than the last commit before the call.
func (t *Table) List(ctx context.Context, f *Filter, o Order, after *Place, limit int) ([]Entry, error) {
	first := &selection{order: o, limit: limit, filter: f.forItems()}
	if after != nil {
		first.after = *after
		first.continues = true
	}
	err := t.each(ctx, first.add)
	return first.entries(), err
}

// Counts are how many items with a price there are.
type Counts struct {
	ByStatus [pricing.NoPrice + 1]int64
	Held     int64
}

// Count counts the items of all games with a price, as List would list them.
func (t *Table) Count(ctx context.Context, staleBefore time.Time) (Counts, error) {
	var n Counts
	stale := micros(staleBefore)
	err := t.each(ctx, func(_ int, _ string, i *item) {
		n.ByStatus[i.current(stale)]++
		if i.held {
			n.Held++
		}
	})
	return n, err
}

// each calls fn for all items with a price. Items of a bucket that does not fit are read
// for the call alone.
func (t *Table) each(ctx context.Context, fn func(bucket int, names string, i *item)) error {
	versions, err := t.versions.latest(ctx)
	if err != nil {
		return fmt.Errorf("versions of prices: %w", err)
	}
	for n := range t.buckets {
		c := t.buckets[n].now.Load()
		if c == nil || c.version < versions[n] {
			if c, err = t.read(ctx, n, versions[n]); err != nil {
				return fmt.Errorf("prices of a bucket: %w", err)
			}
		}
		names, items := c.names, c.items
		if c.partial {
			var b contentsBuilder
			if err := BucketPrices(ctx, t.store, n, math.MaxInt32, b.add); err != nil {
				return fmt.Errorf("prices of a bucket: %w", err)
			}
			names, items = b.build()
		}
		for i := range items {
			fn(n, names, &items[i])
		}
	}
	return nil
}

// itemFilter is a Filter with its times in the unit of item, microseconds.
type itemFilter struct {
	*Filter
	changed, checked, stale int64
	lower                   [catalog.MaxName]byte
}

func (f *Filter) forItems() itemFilter {
	return itemFilter{Filter: f, changed: micros(f.ChangedSince), checked: micros(f.CheckedSince), stale: micros(f.StaleBefore)}
}

func (f *itemFilter) passes(names string, i *item) bool {
	switch {
	case i.app != f.AppID, i.amount < f.Min, f.Max > 0 && i.amount > f.Max,
		i.updated < f.changed, i.checked < f.checked, f.Held && !i.held,
		f.Filter.ByStatus && i.current(f.stale) != f.Status:
		return false
	}
	return f.Words.in(i.name(names), &f.lower)
}

// current returns Current for an item in memory.
func (i *item) current(staleBefore int64) pricing.Status {
	if i.status < pricing.Stale && i.checked < staleBefore {
		return pricing.Stale
	}
	return i.status
}

// selection keeps the first items of an order in a heap whose root is the last of them.
type selection struct {
	order     Order
	limit     int
	filter    itemFilter
	continues bool
	after     Place
	best      []candidate
}

type candidate struct {
	place  Place
	bucket int
	item   *item // of contents, which do not change
}

func (s *selection) add(bucket int, names string, i *item) {
	if !s.filter.passes(names, i) {
		return
	}
	p := Place{Value: i.value(s.order.By, s.filter.stale), Name: i.name(names), Phase: phaseName(i.phase)}
	if s.continues && s.order.compare(&p, &s.after) <= 0 {
		return
	}
	switch {
	case len(s.best) < s.limit:
		heap.Push(s, candidate{p, bucket, i})
	case s.limit > 0 && s.order.compare(&p, &s.best[0].place) < 0:
		s.best[0] = candidate{p, bucket, i}
		heap.Fix(s, 0)
	}
}

// value returns the Value that PlaceOf computes, for an item in memory.
func (i *item) value(by Value, stale int64) int64 {
	switch by {
	case ByPrice:
		return int64(i.amount)
	case ByStatus:
		return int64(i.current(stale))
	case ByChange:
		return i.updated
	default:
		return 0
	}
}

func (s *selection) entries() []Entry {
	slices.SortFunc(s.best, func(a, b candidate) int { return s.order.compare(&a.place, &b.place) })
	out := make([]Entry, len(s.best))
	for n, k := range s.best {
		out[n] = Entry{
			ID:    int64(k.bucket)<<32 | int64(k.item.number),
			Key:   catalog.Key{AppID: k.item.app, Name: k.place.Name, Phase: k.place.Phase},
			Price: k.item.price(),
		}
	}
	return out
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *selection) Len() int { return len(s.best) }

func (s *selection) Less(a, b int) bool {
	return s.order.compare(&s.best[a].place, &s.best[b].place) > 0
}

func (s *selection) Swap(a, b int) { s.best[a], s.best[b] = s.best[b], s.best[a] }

func (s *selection) Push(x any) { s.best = append(s.best, x.(candidate)) } //nolint:forcetypeassert // only add pushes

func (s *selection) Pop() any { return nil } // never called

// Words are what a name must hold, each anywhere, without regard to ASCII case.
type Words [][]byte

// MaxWords is how many words a search takes.
const MaxWords = 16

// WordsOf splits a search at white space. It is false for more than MaxWords different
// words.
func WordsOf(search string) (Words, bool) {
	var w Words
	for word := range strings.FieldsSeq(search) {
		lower := []byte(word)
		lowerASCII(lower)
		if !slices.ContainsFunc(w, func(known []byte) bool { return bytes.Equal(known, lower) }) {
			w = append(w, lower)
		}
		if len(w) > MaxWords {
			return nil, false
		}
	}
	return w, true
}

// In reports whether a name holds all words.
func (w Words) In(name string) bool { return w.in(name, new([catalog.MaxName]byte)) }

func (w Words) in(name string, buffer *[catalog.MaxName]byte) bool {
	if len(w) == 0 {
		return true
	}
	lower := append(buffer[:0], name...)
	lowerASCII(lower)
	for _, word := range w {
		if !bytes.Contains(lower, word) {
			return false
		}
	}
	return true
}

func lowerASCII(text []byte) {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
}
