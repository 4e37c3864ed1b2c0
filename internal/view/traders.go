package view

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/store"
)

// TopTraders is a page of the leaderboard.
type TopTraders struct {
	Items      []TopTrader    `json:"items"`
	Currency   money.Currency `json:"currency"`   // of the volumes
	NextCursor *string        `json:"nextCursor"` // always null: limit is all there is
}

// TopTrader is one rank. It tells nothing by which a trader could be found.
type TopTrader struct {
	Rank           int64       `json:"rank"`
	DisplayName    string      `json:"displayName"` // anonymous: opted out, or without a name
	Trades         int64       `json:"trades"`
	Volume         money.Micro `json:"volume"`
	RankedVolume   money.Micro `json:"rankedVolume" doc:"Of the volume, what counts for the rank: of each day the first five trades with the same counterparty."`
	Counterparties int64       `json:"counterparties"`
	CompletedShare float64     `json:"completedShare" doc:"Completed and settled trades among these and the reversed ones."`
}

// The leaderboard is made anew when something has changed, which is asked at most
// every boardCheck, and so seldom that boardIdle times as long passes in between
// as it took: the database has better things to do.
const (
	boardCheck = time.Second
	boardIdle  = 10
	boardMost  = 100 // ranks
)

// boards are the leaderboards as they were made last.
type boards struct {
	turn chan struct{} // held by who makes them

	mu      sync.Mutex
	lists   map[boardKey][]TopTrader // nil: not made yet; the lists are never changed
	due     time.Time                // when to ask again whether something has changed
	version int64                    // of what they were made of
	day     int64                    // on which
}

type boardKey struct{ period, by string }

// TopTraders ranks who traded most within a period: 7d, 30d or all. Who finds the
// ranks out of date makes them anew; the others are told the last ones meanwhile.
func (r *Reader) TopTraders(ctx context.Context, period, by string, limit int) (TopTraders, error) {
	list, err := r.board(ctx, boardKey{period, by})
	if err != nil {
		return TopTraders{}, err
	}
	return TopTraders{Items: list[:min(limit, len(list))], Currency: r.o.Currency}, nil
}

func (r *Reader) board(ctx context.Context, key boardKey) ([]TopTrader, error) {
	b := &r.boards
	list, there, fresh := b.look(key, r.o.Now())
	if fresh {
		return list, nil
	}
	select {
	case b.turn <- struct{}{}:
	default:
		if there {
			return list, nil
		}
		select {
		case b.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-b.turn }()
	if list, _, fresh := b.look(key, r.o.Now()); fresh {
		return list, nil
	}
	if err := r.makeBoards(ctx); err != nil {
		return nil, err
	}
	list, _, _ = b.look(key, r.o.Now())
	return list, nil
}

// look returns a list, whether it was made at all, and whether it will do.
func (b *boards) look(key boardKey, now time.Time) (list []TopTrader, there, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lists[key], b.lists != nil, b.lists != nil && now.Before(b.due) && b.due.Sub(now) < time.Hour // a clock may be set back
}

// makeBoards makes all lists anew if something has changed.
func (r *Reader) makeBoards(ctx context.Context) error {
	b := &r.boards
	start := r.o.Now()
	version, err := r.o.Store.TradersVersion(ctx) // before what it is the version of
	if err != nil {
		return err
	}
	day := market.Day(start)
	b.mu.Lock()
	lists := b.lists
	same := lists != nil && version == b.version && day == b.day
	b.mu.Unlock()
	if !same {
		if lists, err = r.rankTraders(ctx, day); err != nil {
			return err
		}
	}
	now := r.o.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists, b.version, b.day = lists, version, day
	b.due = now.Add(max(boardCheck, boardIdle*now.Sub(start)))
	return nil
}

// figures are by what traders can be ranked.
func figures() map[string]func(t *store.Trader) int64 {
	return map[string]func(t *store.Trader) int64{
		"volume":         func(t *store.Trader) int64 { return t.Ranked },
		"trades":         func(t *store.Trader) int64 { return t.Trades },
		"counterparties": func(t *store.Trader) int64 { return t.Others },
	}
}

// rankTraders makes all lists. A period is so many days of the calendar (UTC), the
// present one included.
func (r *Reader) rankTraders(ctx context.Context, day int64) (map[boardKey][]TopTrader, error) {
	lists := map[boardKey][]TopTrader{}
	for period, since := range map[string]int64{"7d": day - 6, "30d": day - 29, "all": 0} {
		traders, err := r.o.Store.Traders(ctx, since)
		if err != nil {
			return nil, err
		}
		for by, figure := range figures() {
			slices.SortFunc(traders, func(a, b store.Trader) int {
				return cmp.Or(
					cmp.Compare(figure(&b), figure(&a)), cmp.Compare(b.Ranked, a.Ranked), cmp.Compare(b.Trades, a.Trades),
					cmp.Compare(b.Others, a.Others), cmp.Compare(a.Key, b.Key))
			})
			list, err := r.showTraders(ctx, traders[:min(boardMost, len(traders))])
			if err != nil {
				return nil, err
			}
			lists[boardKey{period, by}] = list
		}
	}
	return lists, nil
}

// showTraders tells of traders what everybody may know.
func (r *Reader) showTraders(ctx context.Context, traders []store.Trader) ([]TopTrader, error) {
	keys := make([]int64, len(traders))
	for i := range traders {
		keys[i] = traders[i].Key
	}
	names, err := r.o.Store.TraderNames(ctx, keys)
	if err != nil {
		return nil, err
	}
	nameOf := make(map[int64]string, len(names))
	for _, n := range names {
		nameOf[n.Key] = n.Name
	}
	list := make([]TopTrader, len(traders))
	for i, t := range traders {
		list[i] = TopTrader{
			Rank: int64(i + 1), DisplayName: cmp.Or(nameOf[t.Key], "anonymous"), Trades: t.Trades,
			Volume: money.Micro(t.Volume), RankedVolume: money.Micro(t.Ranked), Counterparties: t.Others,
			CompletedShare: share(t.Trades, t.Trades+t.Reversed),
		}
	}
	return list, nil
}

// share is part of whole, to four places.
func share(part, whole int64) float64 { return float64(part*10_000/whole) / 10_000 }
