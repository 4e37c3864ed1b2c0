package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/metadata"
	"assay/internal/view/prices"
)

// ItemFilter selects and sorts items of a game. A zero field other than AppID does not filter.
// The default sort is by name.
type ItemFilter struct {
	AppID        int32
	Search       string // words that the name must contain, in any order and ignoring ASCII case
	Status       string // current status of the price
	Market       string // key or provider/key of a market that offers the item
	Min, Max     money.Micro
	ChangedSince time.Time   // last price change at this time or later
	UpdatedSince time.Time   // last price confirmation at this time or later
	Held         bool        // only items with a held price
	MinDayChange money.Micro // at least this relative change of the price in a day, up or down
	Sort         string      // one of ItemSorts
	Fields       Fields
	Currency     money.Currency // of Min, Max and the response; empty: the base currency
}

// ItemSorts returns the sort orders: by name, price, status (best first), time of change and
// relative change in a day. A minus sign reverses the order. Items with equal values are sorted by name,
// from A to Z.
func ItemSorts() []string {
	return []string{"name", "-name", "price", "-price", "status", "-status", "changed", "-changed", "dayChange", "-dayChange"}
}

// orderOf parses a sort order. Unknown orders sort by name.
func orderOf(sort string) prices.Order {
	by, descending := strings.CutPrefix(sort, "-")
	o := prices.Order{Descending: descending, Backward: descending && by == "name"}
	switch by {
	case "price":
		o.By = prices.ByPrice
	case "status":
		o.By = prices.ByStatus
	case "changed":
		o.By = prices.ByChange
	case "dayChange":
		o.By = prices.ByMove
	}
	return o
}

// PriceStatuses returns the statuses of a price, best first.
func PriceStatuses() []string {
	var all []string
	for s := pricing.OK; s <= pricing.NoPrice; s++ {
		all = append(all, s.String())
	}
	return all
}

// Items lists items with their prices. Items with a price come from memory and are never older
// than the last commit before the call. Items without a price come from the database.
func (r *ItemReader) Items(ctx context.Context, f ItemFilter, after string, limit int) (PricedItems, error) {
	leave, err := r.o.enter(ctx, admission.Search)
	if err != nil {
		return PricedItems{}, err
	}
	defer leave()
	now := r.o.Now().Truncate(time.Microsecond)
	convert, err := r.o.converter(ctx, f.Currency, now)
	if err != nil {
		return PricedItems{}, err
	}
	f.Min, f.Max = convert.limits(f.Min, f.Max)
	l, err := r.itemList(ctx, &f, now)
	if err != nil {
		return PricedItems{}, err
	}
	list := "items " + cmp.Or(f.Sort, "name")
	var start *prices.Place
	if after != "" {
		var value int64
		start = &prices.Place{}
		if err := readCursor(after, list, &value, &start.Name, &start.Phase); err != nil {
			return PricedItems{}, err
		}
		start.Value = value - 1 // integers in a cursor start at 1
	}
	if l.order.By == prices.ByMove || f.MinDayChange > 0 {
		r.days.use(f.AppID, now)
		if l.filter.Moves, err = r.dayMoves(ctx, f.AppID, now); err != nil {
			return PricedItems{}, err
		}
	}
	rows, err := l.read(ctx, start, limit+1)
	if err != nil {
		return PricedItems{}, err
	}
	p := page(rows, limit, func(e *prices.Entry) PricedItem { return r.pricedItem(e, f.Fields, convert) },
		func(e *prices.Entry) *string {
			p := l.order.PlaceOf(e, l.filter.StaleBefore)
			return cursor(list, p.Value+1, p.Name, p.Phase)
		})
	return PricedItems{p, convert.to, convert.used()}, nil
}

// renewPrices is the interval at which KeepPrices rereads changed prices. During a refresh, a list
// then rereads only the prices that changed since.
const renewPrices = 200 * time.Millisecond

// KeepPrices keeps the prices in memory current until ctx ends, while lists are requested. Lists are
// then fast during a refresh.
func (r *ItemReader) KeepPrices(ctx context.Context) {
	keep(ctx, renewPrices, func(ctx context.Context) error {
		if time.Since(r.prices.Used()) >= inUse {
			return nil
		}
		if err := r.prices.Renew(ctx); err != nil {
			return err
		}
		return r.renewMoves(ctx)
	})
}

func (r *ItemReader) pricedItem(e *prices.Entry, fields Fields, convert *converter) PricedItem {
	p := &e.Price
	price := convert.price(p.Amount)
	out := PricedItem{
		ItemPrice: ItemPrice{
			AppID: e.Key.AppID, MarketHashName: e.Key.Name, Phase: e.Key.Phase,
			CurrentPrice: price, CurrentPriceDecimal: money.Decimal(price),
			Status: currentStatus(p.Amount, p.Status, p.CheckedAt, convert.now).String(), PriceUpdatedAt: when(p.UpdatedAt),
		},
		PriceCheckedAt: when(p.CheckedAt), Held: p.Held, DayChange: e.Move, Figures: fields.figures(&p.Figures),
		Metadata: r.o.Metadata.Of(e.Key),
	}
	convert.figures(out.Figures)
	return out
}

// itemList reads a filtered list of items.
type itemList struct {
	reader           *ItemReader
	filter           prices.Filter
	order            prices.Order
	market           int64 // market that must offer the item; 0: any
	priced, unpriced bool  // which kinds of items the list includes
}

func (r *ItemReader) itemList(ctx context.Context, f *ItemFilter, now time.Time) (*itemList, error) {
	words, ok := prices.WordsOf(f.Search)
	if !ok {
		return nil, fault.InvalidParameter("q", "must have at most %d words", prices.MaxWords)
	}
	status := slices.Index(PriceStatuses(), f.Status)
	if f.Status != "" && status < 0 {
		return nil, fault.InvalidParameter("status", "must be one of %s", strings.Join(PriceStatuses(), ", "))
	}
	l := &itemList{reader: r, order: orderOf(f.Sort), filter: prices.Filter{
		AppID: f.AppID, Words: words, ByStatus: f.Status != "", Status: pricing.Status(max(status, 0)), Min: f.Min, Max: f.Max,
		ChangedSince: f.ChangedSince, CheckedSince: f.UpdatedSince, Held: f.Held, MinMove: f.MinDayChange, StaleBefore: now.Add(-freshFor),
	}}
	none := pricing.NoPrice.String()
	l.priced = f.Status != none
	l.unpriced = (f.Status == "" || f.Status == none) && f.Min <= 0 && f.Max <= 0 && f.ChangedSince.IsZero() && f.UpdatedSince.IsZero() && !f.Held && f.MinDayChange <= 0
	if f.Market == "" {
		return l, nil
	}
	known, err := Markets(ctx, r.o.Store)
	if err != nil {
		return nil, err
	}
	l.market, err = marketOf(known, f.Market)
	return l, err
}

// read returns the first entries after a place. A nil place is the beginning.
func (l *itemList) read(ctx context.Context, after *prices.Place, limit int) ([]prices.Entry, error) {
	var all, priced []prices.Entry
	var err error
	if l.unpriced {
		if all, err = l.offered(ctx, after, limit, l.nextUnpriced); err != nil {
			return nil, err
		}
	}
	if l.priced {
		if priced, err = l.offered(ctx, after, limit, l.nextPriced); err != nil {
			return nil, err
		}
	}
	// An item that got its price between the two reads is in both results.
	has := make(map[int64]bool, len(priced))
	for i := range priced {
		has[priced[i].ID] = true
	}
	all = append(slices.DeleteFunc(all, func(e prices.Entry) bool { return has[e.ID] }), priced...)
	l.order.Sort(all, l.filter.StaleBefore)
	return all[:min(limit, len(all))], nil
}

func (l *itemList) nextPriced(ctx context.Context, after *prices.Place, limit int) ([]prices.Entry, error) {
	found, err := l.reader.prices.List(ctx, &l.filter, l.order, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list items with a price: %w", err)
	}
	return found, nil
}

// unpricedChunk is the number of items that one query reads if a search filters them afterwards.
const unpricedChunk = 2000

// nextUnpriced returns items without a price. Unless the list is sorted by name, they are
// contiguous at one end of it.
func (l *itemList) nextUnpriced(ctx context.Context, after *prices.Place, limit int) ([]prices.Entry, error) {
	var from catalog.Key
	if after != nil {
		value := l.order.PlaceOf(&prices.Entry{Price: prices.Price{Status: pricing.NoPrice}}, l.filter.StaleBefore).Value
		switch before := after.Value < value; {
		case after.Value == value:
			from.Name, from.Phase = after.Name, after.Phase
		case before == l.order.Descending:
			return nil, nil
		}
	}
	var out []prices.Entry
	for {
		chunk := unpricedChunk
		if len(l.filter.Words) == 0 {
			chunk = limit
		}
		read := UnpricedItems
		if l.order.Backward {
			read = unpricedItemsBackward
		}
		items, err := read(ctx, l.reader.o.Store, l.filter.AppID, from.Name, from.Phase, chunk)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			if l.filter.Words.In(i.Key.Name) {
				out = append(out, prices.Entry{ID: i.ID, Key: i.Key, Price: prices.Price{Status: pricing.NoPrice}})
			}
			if len(out) == limit {
				return out, nil
			}
		}
		if len(items) < chunk {
			return out, nil
		}
		from = items[len(items)-1].Key
	}
}

// offeredChunk and maxOfferedChunk are the first and the largest number of entries that offered
// reads in one step. Most items are offered on most markets, so the first step is small. Each step
// lists all items again, so the next ones are larger.
const (
	offeredChunk    = 125
	maxOfferedChunk = 8000
)

// offered reads entries until it has found limit entries that the selected market offers.
func (l *itemList) offered(ctx context.Context, after *prices.Place, limit int,
	next func(ctx context.Context, after *prices.Place, limit int) ([]prices.Entry, error),
) ([]prices.Entry, error) {
	if l.market == 0 {
		return next(ctx, after, limit)
	}
	var out []prices.Entry
	for chunk := max(offeredChunk, limit); ; chunk = min(4*chunk, maxOfferedChunk) {
		entries, err := next(ctx, after, chunk)
		if err != nil || len(entries) == 0 {
			return out, err
		}
		ids := make([]int64, len(entries))
		for i := range entries {
			ids[i] = entries[i].ID
		}
		quoted, err := quoted(ctx, l.reader.o.Store, ids, l.market)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if quoted[ids[i]] {
				out = append(out, entries[i])
			}
			if len(out) == limit {
				return out, nil
			}
		}
		if len(entries) < chunk {
			return out, nil
		}
		after = new(l.order.PlaceOf(&entries[len(entries)-1], l.filter.StaleBefore))
	}
}

// PricedItems is a page of items.
type PricedItems struct {
	Page[PricedItem]
	Currency money.Currency   `json:"currency"`
	Rates    []ConversionRate `json:"rates,omitempty"`
}

// PricedItem is an item of a list.
type PricedItem struct {
	ItemPrice
	PriceCheckedAt *time.Time `json:"priceCheckedAt"`
	Held           bool       `json:"held"` // a suspicious new price is held until it is confirmed
	// DayChange is the relative change in a day. It is nil if it is unknown, or if the list is
	// neither filtered nor sorted by it.
	DayChange *money.Micro `json:"dayChange,omitempty"`
	*Figures
	Metadata *metadata.Description `json:"metadata,omitempty"`
}

// PriceCounts counts all items by the current status of their price. It includes all games,
// even those out of scope.
type PriceCounts struct {
	ByStatus map[string]int64 // contains every status
	Held     int64            // items whose suspicious new price is held until it is confirmed
}

// PriceCounts counts items by price status. Items with a price are counted in memory.
func (r *ItemReader) PriceCounts(ctx context.Context) (PriceCounts, error) {
	unpriced, err := unpricedCount(ctx, r.o.Store)
	if err != nil {
		return PriceCounts{}, fmt.Errorf("count items without a price: %w", err)
	}
	n, err := r.prices.Count(ctx, r.o.Now().Add(-freshFor))
	if err != nil {
		return PriceCounts{}, fmt.Errorf("count items with a price: %w", err)
	}
	out := PriceCounts{ByStatus: map[string]int64{}, Held: n.Held}
	for status, count := range n.ByStatus {
		out.ByStatus[pricing.Status(status).String()] = count
	}
	out.ByStatus[pricing.NoPrice.String()] = unpriced
	return out, nil
}
