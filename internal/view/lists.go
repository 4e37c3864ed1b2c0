package view

import (
	"context"
	"math"
	"slices"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/money"
)

// UserSummary is a user with the value and the age of the inventory, for operators.
type UserSummary struct {
	UserID, SteamID, DisplayName string
	CreatedAt                    time.Time
	Value                        money.Sum // in the base currency
	Rows, Unpriced               int64
	SyncedAt                     *time.Time // time of the oldest inventory of all games and contexts; nil: none
}

// UserList lists users in byte order of their ids, with the value and age of their inventories.
// A search selects users whose id, Steam id or display name contains the text, ignoring ASCII
// case.
func (r *UserReader) UserList(ctx context.Context, search, after string, limit int) (Page[UserSummary], error) {
	leave, err := r.o.enter(ctx, admission.Search)
	if err != nil {
		return Page[UserSummary]{}, err
	}
	defer leave()
	var id string
	if err := readCursor(after, "userList", &id); err != nil {
		return Page[UserSummary]{}, err
	}
	rows, err := listUsers(ctx, r.o.Store, search, id, limit+1)
	if err != nil {
		return Page[UserSummary]{}, err
	}
	keys := make([]int64, 0, limit)
	for i := range rows[:min(limit, len(rows))] {
		keys = append(keys, rows[i].key)
	}
	totals, err := inventoryTotals(ctx, r.o.Store, keys)
	if err != nil {
		return Page[UserSummary]{}, err
	}
	ages, err := inventoryAges(ctx, r.o.Store, keys)
	return page(rows, limit, func(u *storedUser) UserSummary {
		t := totals[u.key]
		return UserSummary{
			UserID: u.id, SteamID: u.steamID, DisplayName: u.display, CreatedAt: u.createdAt,
			Value: t.Value, Rows: t.Rows, Unpriced: t.Unpriced, SyncedAt: when(ages[u.key]),
		}
	}, func(u *storedUser) *string { return cursor("userList", u.id) }), err
}

// Owners summarizes the users who have an item.
type Owners struct {
	Users, Rows, Pieces int64
	Most                []Owner // users with the most pieces
}

// Owners returns how many users have an item, and the users with the most pieces.
func (r *ItemReader) Owners(ctx context.Context, key catalog.Key, most int) (Owners, error) {
	item, err := r.ids.of(ctx, key)
	if err != nil {
		return Owners{}, err
	}
	var out Owners
	if out.Users, out.Rows, out.Pieces, err = countOwned(ctx, r.o.Store, item); err != nil {
		return Owners{}, err
	}
	out.Most, err = readOwners(ctx, r.o.Store, item, most)
	return out, err
}

// ItemRun is the result of an item in a run.
type ItemRun struct {
	Run RunBar
	JobItem
}

// itemRunsRead is the number of runs that ItemRuns searches for an item.
const itemRunsRead = 50

// ItemRuns returns the results of an item in the last runs that contained it, newest first. It
// considers the last 50 runs.
func (r *ItemReader) ItemRuns(ctx context.Context, key catalog.Key, most int) ([]ItemRun, error) {
	item, err := r.ids.of(ctx, key)
	if err != nil {
		return nil, err
	}
	jobs, err := Jobs(ctx, r.o.Store, "", math.MaxInt64, itemRunsRead)
	if err != nil {
		return nil, err
	}
	var out []ItemRun
	for part := range slices.Chunk(jobs, max(1, most)) { // most runs contain the item
		found, err := itemInJobs(ctx, r.o.Store, item, part)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if f, ok := found[part[i].ID]; ok && len(out) < most {
				f.Key = key
				out = append(out, ItemRun{runBar(&part[i]), jobItem(&f)})
			}
		}
		if len(out) == most {
			break
		}
	}
	return out, nil
}

// Held lists the prices that the guard holds until they are accepted or confirmed.
func (r *ItemReader) Held(ctx context.Context, after string, limit int) (Page[HeldPrice], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[HeldPrice]{}, err
	}
	defer leave()
	var id int64
	if err := readCursor(after, "held", &id); err != nil {
		return Page[HeldPrice]{}, err
	}
	rows, err := readHeldPrices(ctx, r.o.Store, id, limit+1)
	for i := range rows {
		rows[i].Reason = heldReason(rows[i].Guard, r.o.Currency)
	}
	return page(rows, limit, func(h *HeldPrice) HeldPrice { return *h }, func(h *HeldPrice) *string { return cursor("held", h.ID) }), err
}

// HeldCount returns the number of held prices. It needs no scan of all items, and does not wait for
// the admission gate.
func (r *ItemReader) HeldCount(ctx context.Context) (int64, error) {
	return countHeldPrices(ctx, r.o.Store)
}

// HeldOf returns how many of the given items have a held price. It returns an error if an item is
// unknown.
func (r *ItemReader) HeldOf(ctx context.Context, keys []catalog.Key) (int64, error) {
	ids := make([]int64, 0, len(keys))
	for _, key := range keys {
		id, err := r.ids.of(ctx, key)
		if err != nil {
			return 0, err
		}
		ids = append(ids, id)
	}
	return countHeldOf(ctx, r.o.Store, ids)
}

// Missing lists the missing-price queue, sorted by the next attempt.
func (r *ItemReader) Missing(ctx context.Context, after string, limit int) (Page[MissingPrice], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[MissingPrice]{}, err
	}
	defer leave()
	var item int64
	due := -1
	if err := readCursor(after, "missing", &due, &item); err != nil {
		return Page[MissingPrice]{}, err
	}
	rows, err := readMissing(ctx, r.o.Store, int64(due), item, limit+1)
	if err != nil {
		return Page[MissingPrice]{}, err
	}
	for i := range rows {
		if m := &rows[i]; !m.soonest.IsZero() && r.o.Engine != nil {
			m.LastAt = m.soonest.Add(-r.o.Engine.MissingRetry())
		}
	}
	err = addOwners(ctx, r.o.Store, rows)
	return page(rows, limit, func(m *MissingPrice) MissingPrice { return *m }, func(m *MissingPrice) *string { return cursor("missing", m.due, m.item) }), err
}

// Holds lists the credits of sellers that are held until their trades settle, sorted by end. Those of
// pending trades, whose end is unknown, come last. A user id selects one seller.
func (r *MarketReader) Holds(ctx context.Context, userID, after string, limit int) (Page[Hold], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[Hold]{}, err
	}
	defer leave()
	var trade int64
	pending, at := 0, -1
	if err := readCursor(after, "holds", &pending, &at, &trade); err != nil {
		return Page[Hold]{}, err
	}
	rows, err := readHolds(ctx, r.o.Store, userID, pending, int64(at), trade, limit+1)
	return page(rows, limit, func(h *Hold) Hold { return *h }, func(h *Hold) *string {
		pending, at := h.position()
		return cursor("holds", pending, at, h.TradeID)
	}), err
}

// Sellers lists users with listings or sales, in byte order of their ids, with the number of
// their listings and sales by state. A search selects ids that contain the text.
func (r *MarketReader) Sellers(ctx context.Context, search, after string, limit int) (Page[Seller], error) {
	class := admission.List
	if search != "" {
		class = admission.Search
	}
	leave, err := r.o.enter(ctx, class)
	if err != nil {
		return Page[Seller]{}, err
	}
	defer leave()
	var id string
	if err := readCursor(after, "sellers", &id); err != nil {
		return Page[Seller]{}, err
	}
	rows, err := readSellers(ctx, r.o.Store, search, id, limit+1)
	return page(rows, limit, func(s *Seller) Seller { return *s }, func(s *Seller) *string { return cursor("sellers", s.UserID) }), err
}
