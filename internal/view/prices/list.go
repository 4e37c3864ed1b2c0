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
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// Entry is an item with its price.
type Entry struct {
	ID    int64 // item ID
	Key   catalog.Key
	Price Price
	Move  *money.Micro // relative change since Moves.Since; nil: not requested or unknown
}

// Filter selects items of one game. A zero field other than AppID does not filter.
type Filter struct {
	AppID        int32
	Words        Words
	ByStatus     bool // filter by Status
	Status       pricing.Status
	Min, Max     money.Micro
	ChangedSince time.Time   // last price change at this time or later
	CheckedSince time.Time   // last price confirmation at this time or later
	Held         bool        // only items with a held price
	Moves        *Moves      // prices at an earlier time; nil: Move of each entry is nil
	MinMove      money.Micro // only items with at least this relative change, up or down
	// StaleBefore separates fresh from stale prices: earlier confirmations are stale.
	StaleBefore time.Time
}

// Order sorts a list by a value. Items with equal values are sorted by name and phase.
type Order struct {
	By         Value
	Descending bool // reverses values, but not names
	Backward   bool // reverses names and phases
}

// Value is the sort key of a list.
type Value uint8

// The values.
const (
	ByName Value = iota // only by name and phase
	ByPrice
	ByStatus // with the Filter's StaleBefore
	ByChange // time of the last price change
	ByMove   // relative change since Filter.Moves.Since; unknown changes are lowest
)

// Place is the position of an item in an order.
type Place struct {
	Value       int64 // 0 when sorted by name
	Name, Phase string
}

// compare returns a negative number if a sorts before b.
func (o Order) compare(a, b *Place) int {
	switch c := cmp.Compare(a.Value, b.Value); {
	case c != 0 && o.Descending:
		return -c
	case c != 0:
		return c
	}
	c := cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Phase, b.Phase))
	if o.Backward {
		return -c
	}
	return c
}

// PlaceOf returns the place of an entry. Prices confirmed before staleBefore are stale.
func (o Order) PlaceOf(e *Entry, staleBefore time.Time) Place {
	p := Place{Name: e.Key.Name, Phase: e.Key.Phase}
	switch o.By {
	case ByPrice:
		p.Value = int64(e.Price.Amount)
	case ByStatus:
		p.Value = int64(Current(e.Price.Amount, e.Price.Status, e.Price.CheckedAt, staleBefore))
	case ByChange:
		p.Value = db.Micros(e.Price.UpdatedAt)
	case ByMove:
		p.Value = moveValue(e.Move)
	}
	return p
}

// Sort sorts entries.
func (o Order) Sort(all []Entry, staleBefore time.Time) {
	slices.SortFunc(all, func(a, b Entry) int {
		x, y := o.PlaceOf(&a, staleBefore), o.PlaceOf(&b, staleBefore)
		return o.compare(&x, &y)
	})
}

// Current returns the status of the last estimate, or Stale if the price was confirmed before
// staleBefore.
func Current(price money.Micro, status pricing.Status, checked, staleBefore time.Time) pricing.Status {
	if price > 0 && status < pricing.Stale && checked.Before(staleBefore) {
		return pricing.Stale
	}
	return status
}

// List returns up to limit items with a price that match the filter, in the given order. It
// starts after the given place, or at the beginning if after is nil. The result is never older
// than the last commit before the call.
func (t *Table) List(ctx context.Context, f *Filter, o Order, after *Place, limit int) ([]Entry, error) {
	first := &selection{order: o, limit: limit, filter: f.forItems()}
	if after != nil {
		first.after = *after
		first.continues = true
	}
	err := t.each(ctx, first.add)
	return first.entries(), err
}

// Find calls fn with the ID of each item with a price whose name contains all words.
func (t *Table) Find(ctx context.Context, words Words, fn func(id int64)) error {
	var lower [catalog.MaxName]byte
	return t.each(ctx, func(bucket int, names string, i *item) {
		if words.in(i.name(names), &lower) {
			fn(idOf(bucket, i))
		}
	})
}

// Counts holds the numbers of items with a price.
type Counts struct {
	ByStatus [pricing.NoPrice + 1]int64
	Held     int64
}

// Count counts the items with a price in all games. It uses the same statuses as List.
func (t *Table) Count(ctx context.Context, staleBefore time.Time) (Counts, error) {
	var n Counts
	stale := db.Micros(staleBefore)
	err := t.each(ctx, func(_ int, _ string, i *item) {
		n.ByStatus[i.current(stale)]++
		if i.held {
			n.Held++
		}
	})
	return n, err
}

// each calls fn for all items with a price. Items of buckets that do not fit in memory are
// read for this call only.
func (t *Table) each(ctx context.Context, fn func(bucket int, names string, i *item)) error {
	t.listed.Store(time.Now().UnixNano())
	versions, err := t.versions.latest(ctx)
	if err != nil {
		return fmt.Errorf("read price versions: %w", err)
	}
	if err := t.update(ctx, versions, func(*contents) bool { return true }); err != nil {
		return fmt.Errorf("read prices of changed buckets: %w", err)
	}
	for n := range t.buckets {
		c := t.buckets[n].now.Load()
		names, items := c.names, c.items
		if c.partial {
			var b contentsBuilder
			if err := BucketPrices(ctx, t.store, []int{n}, math.MaxInt32, b.add); err != nil {
				return fmt.Errorf("read prices of a bucket: %w", err)
			}
			names, items = b.build()
		}
		for i := range items {
			fn(n, names, &items[i])
		}
	}
	return nil
}

// itemFilter is a Filter with times in microseconds, as in item.
type itemFilter struct {
	*Filter
	changed, checked, stale int64
	lower                   [catalog.MaxName]byte
}

func (f *Filter) forItems() itemFilter {
	return itemFilter{Filter: f, changed: db.Micros(f.ChangedSince), checked: db.Micros(f.CheckedSince), stale: db.Micros(f.StaleBefore)}
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

// current is like Current, for a cached item.
func (i *item) current(staleBefore int64) pricing.Status {
	if i.status < pricing.Stale && i.checked < staleBefore {
		return pricing.Stale
	}
	return i.status
}

// selection keeps the first limit items of an order. It is a heap with the last of these items at
// the root.
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
	item   *item // points into immutable contents
	move   *money.Micro
}

func (s *selection) add(bucket int, names string, i *item) {
	if !s.filter.passes(names, i) {
		return
	}
	var move *money.Micro
	if s.filter.Moves != nil {
		move = s.filter.Moves.of(idOf(bucket, i), i)
		if s.filter.MinMove > 0 && (move == nil || max(*move, -*move) < s.filter.MinMove) {
			return
		}
	}
	p := Place{Value: i.value(s.order.By, s.filter.stale, move), Name: i.name(names), Phase: phaseName(i.phase)}
	if s.continues && s.order.compare(&p, &s.after) <= 0 {
		return
	}
	switch {
	case len(s.best) < s.limit:
		heap.Push(s, candidate{p, bucket, i, move})
	case s.limit > 0 && s.order.compare(&p, &s.best[0].place) < 0:
		s.best[0] = candidate{p, bucket, i, move}
		heap.Fix(s, 0)
	}
}

// value returns the same sort value as PlaceOf, for a cached item.
func (i *item) value(by Value, stale int64, move *money.Micro) int64 {
	switch by {
	case ByPrice:
		return int64(i.amount)
	case ByStatus:
		return int64(i.current(stale))
	case ByChange:
		return i.updated
	case ByMove:
		return moveValue(move)
	default:
		return 0
	}
}

func (s *selection) entries() []Entry {
	slices.SortFunc(s.best, func(a, b candidate) int { return s.order.compare(&a.place, &b.place) })
	out := make([]Entry, len(s.best))
	for n, k := range s.best {
		out[n] = Entry{
			ID:    idOf(k.bucket, k.item),
			Key:   catalog.Key{AppID: k.item.app, Name: k.place.Name, Phase: k.place.Phase},
			Price: k.item.price(),
			Move:  k.move,
		}
	}
	return out
}

// These methods implement heap.Interface.
func (s *selection) Len() int { return len(s.best) }

func (s *selection) Less(a, b int) bool {
	return s.order.compare(&s.best[a].place, &s.best[b].place) > 0
}

func (s *selection) Swap(a, b int) { s.best[a], s.best[b] = s.best[b], s.best[a] }

func (s *selection) Push(x any) { s.best = append(s.best, x.(candidate)) } //nolint:forcetypeassert // only add pushes

func (s *selection) Pop() any { return nil } // never called

// Words lists words that a name must contain, at any position and ignoring ASCII case.
type Words [][]byte

// MaxWords is the maximum number of words in a search.
const MaxWords = 16

// WordsOf splits a search at white space. It returns false for more than MaxWords different
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

// In reports whether a name contains all words.
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
