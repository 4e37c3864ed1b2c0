package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
)

// QueueMissing queues the items without a price, each only once. It creates unknown items.
// Items that are already queued may become due sooner. The caller must validate the keys.
func (s *Service) QueueMissing(ctx context.Context, keys []catalog.Key) error {
	byApp := map[int32][]catalog.Key{}
	seen := make(map[catalog.Key]bool, len(keys))
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			byApp[k.AppID] = append(byApp[k.AppID], k)
		}
	}
	var sooner bool
	err := s.InTx(ctx, func(tx *db.Tx) (err error) {
		all := map[catalog.Key]catalog.Item{}
		for _, app := range slices.Sorted(maps.Keys(byApp)) {
			items, err := catalog.EnsureItems(tx, app, byApp[app])
			if err != nil {
				return fmt.Errorf("items: %w", err)
			}
			maps.Copy(all, items)
		}
		prices, err := lockPrices(tx, all)
		if err != nil {
			return err
		}
		if _, sooner, err = catalog.QueueMissing(tx, unpriced(prices)); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		return nil
	})
	if err == nil && sooner {
		s.Queued()
	}
	return err
}

// lockPrices locks the prices of items until the transaction ends, and returns them.
func lockPrices(tx *db.Tx, items map[catalog.Key]catalog.Item) (map[int64]money.Micro, error) {
	prices := pricesOf(items)
	var known []int64
	for _, i := range items {
		if !i.New {
			known = append(known, i.ID)
		}
	}
	locked, err := catalog.LockPrices(tx, known)
	if err != nil {
		return nil, fmt.Errorf("lock prices: %w", err)
	}
	maps.Copy(prices, locked)
	return prices, nil
}

// pricesOf returns the prices of items by item id.
func pricesOf(items map[catalog.Key]catalog.Item) map[int64]money.Micro {
	prices := make(map[int64]money.Micro, len(items))
	for _, i := range items {
		prices[i.ID] = i.Price
	}
	return prices
}

// unpriced returns the ids of the items without a price.
func unpriced(prices map[int64]money.Micro) []int64 {
	ids := make([]int64, 0, len(prices))
	for id, price := range prices {
		if price <= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
