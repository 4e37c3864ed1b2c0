package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"assay/internal/catalog"
)

// QueueMissing queues those of the items that have no price as a sync would:
// each once, creating those that there are not yet. The caller has checked the
// keys.
func (s *Service) QueueMissing(ctx context.Context, keys []catalog.Key) error {
	byApp := map[int32][]catalog.Key{}
	seen := make(map[catalog.Key]bool, len(keys))
	for _, k := range keys {
		if !seen[k] {
			seen[k] = true
			byApp[k.AppID] = append(byApp[k.AppID], k)
		}
	}
	var queued int64
	err := s.InTx(ctx, func(tx Tx) error {
		var missing []int64
		for _, app := range slices.Sorted(maps.Keys(byApp)) {
			items, err := tx.EnsureItems(app, byApp[app])
			if err != nil {
				return fmt.Errorf("items: %w", err)
			}
			missing = append(missing, unpriced(items)...)
		}
		if err := tx.HoldPrices(missing); err != nil {
			return err
		}
		n, err := tx.QueueMissing(missing)
		if err != nil {
			return fmt.Errorf("queue: %w", err)
		}
		queued = n
		return nil
	})
	if err == nil && queued > 0 {
		s.Queued()
	}
	return err
}

// unpriced returns the ids of the items without a price.
func unpriced(items map[catalog.Key]Item) []int64 {
	ids := make([]int64, 0, len(items))
	for _, i := range items {
		if i.Price <= 0 {
			ids = append(ids, i.ID)
		}
	}
	return ids
}
