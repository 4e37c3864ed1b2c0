package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"assay/internal/catalog"
	"assay/internal/money"
)

// QueueMissing queues those of the items that have no price as a sync would: each
// once, creating those that there are not yet, and those that wait are due sooner
// (contract, rule 3). The caller has checked the keys.
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
	err := s.InTx(ctx, func(tx Tx) (err error) {
		var missing []int64
		for _, app := range slices.Sorted(maps.Keys(byApp)) {
			items, err := tx.HoldItems(app, byApp[app])
			if err != nil {
				return fmt.Errorf("items: %w", err)
			}
			missing = append(missing, unpriced(pricesOf(items))...)
		}
		if _, sooner, err = tx.QueueMissing(missing); err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		return nil
	})
	if err == nil && sooner {
		s.Queued()
	}
	return err
}

// pricesOf returns the prices of items by their ids.
func pricesOf(items map[catalog.Key]Item) map[int64]money.Micro {
	prices := make(map[int64]money.Micro, len(items))
	for _, i := range items {
		prices[i.ID] = i.Price
	}
	return prices
}

// unpriced returns those of the items that have no price.
func unpriced(prices map[int64]money.Micro) []int64 {
	ids := make([]int64, 0, len(prices))
	for id, price := range prices {
		if price <= 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
