package view

import (
	"cmp"
	"context"
	"time"

	"assay/internal/money"
	"assay/internal/view/ranking"
)

// TopTraders is a page of the leaderboard.
type TopTraders struct {
	Items      []TopTrader    `json:"items"`
	Currency   money.Currency `json:"currency"`   // of the volumes
	NextCursor *string        `json:"nextCursor"` // always null: there is one page
	AsOf       time.Time      `json:"-"`          // trades until then count
}

// TopTrader is one rank. It reveals nothing that identifies a trader.
type TopTrader struct {
	Rank           int64       `json:"rank"`
	DisplayName    string      `json:"displayName"` // anonymous: opted out, or without a name
	Trades         int64       `json:"trades"`
	Volume         money.Micro `json:"volume"`
	RankedVolume   money.Micro `json:"rankedVolume"`
	Counterparties int64       `json:"counterparties"`
	CompletedShare float64     `json:"completedShare"`
}

// KeepRanking keeps the leaderboard up to date until ctx ends.
func (r *TraderReader) KeepRanking(ctx context.Context) { r.ranking.Run(ctx) }

// RefreshRanking brings the leaderboard up to date once.
func (r *TraderReader) RefreshRanking(ctx context.Context) error { return r.ranking.Refresh(ctx) }

// TopTraders ranks traders within a period: 7d, 30d or all. The ranks are those of the
// last update. Display names are read each time, so that a user who
// opted out is no longer named.
func (r *TraderReader) TopTraders(ctx context.Context, period, by string, limit int) (TopTraders, error) {
	traders, asOf, err := r.ranking.Top(ctx, ranking.Key{Period: period, By: by})
	if err != nil {
		return TopTraders{}, err
	}
	list, err := r.showTraders(ctx, traders[:min(limit, len(traders))])
	return TopTraders{Items: list, Currency: r.o.Currency, AsOf: asOf}, err
}

// showTraders returns the public part of traders.
func (r *TraderReader) showTraders(ctx context.Context, traders []ranking.Trader) ([]TopTrader, error) {
	keys := make([]int64, len(traders))
	for i := range traders {
		keys[i] = traders[i].Key
	}
	names, err := ranking.TraderNames(ctx, r.o.Store, keys)
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
