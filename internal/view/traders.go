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
	Currency   money.Currency `json:"currency"`   // currency of the volumes
	NextCursor *string        `json:"nextCursor"` // always null: there is a single page
	AsOf       time.Time      `json:"-"`          // includes trades up to this time
}

// TopTrader is one rank. It does not identify the trader.
type TopTrader struct {
	Rank           int64       `json:"rank"`
	DisplayName    string      `json:"displayName"` // anonymous if the user opted out or has no name
	Trades         int64       `json:"trades"`
	Volume         money.Micro `json:"volume"`
	RankedVolume   money.Micro `json:"rankedVolume"`
	Counterparties int64       `json:"counterparties"`
	CompletedShare float64     `json:"completedShare"`
}

// KeepRanking updates the leaderboard until ctx ends.
func (r *TraderReader) KeepRanking(ctx context.Context) { r.ranking.Run(ctx) }

// RefreshRanking updates the leaderboard once.
func (r *TraderReader) RefreshRanking(ctx context.Context) error { return r.ranking.Refresh(ctx) }

// TopTraders returns the leaderboard of a period: 7d, 30d or all. Ranks are from the last
// update. Display names are read for each call, so that an opt-out takes effect immediately.
func (r *TraderReader) TopTraders(ctx context.Context, period, by string, limit int) (TopTraders, error) {
	traders, asOf, err := r.ranking.Top(ctx, ranking.Key{Period: period, By: by})
	if err != nil {
		return TopTraders{}, err
	}
	list, err := r.showTraders(ctx, traders[:min(limit, len(traders))])
	return TopTraders{Items: list, Currency: r.o.Currency, AsOf: asOf}, err
}

// showTraders returns the public data of traders.
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

// share returns part / whole with four decimal places.
func share(part, whole int64) float64 { return float64(part*10_000/whole) / 10_000 }
