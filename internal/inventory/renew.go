package inventory

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/user"
)

// Renew updates the prices of the stored rows and queues items without a price, as a new
// push of the same inventory would. It starts no inspection and does not change listings
// and transfers. It returns false without changes if the stored inventory is older than
// notBefore, or if its time is more than MaxAhead in the future.
func (s *Service) Renew(ctx context.Context, userID string, app int32, contextID string, notBefore time.Time) (fresh bool, err error) {
	var sooner bool
	err = s.InTx(ctx, func(tx *db.Tx) (err error) {
		held, err := user.Lock(tx, userID)
		if err != nil {
			return fmt.Errorf("user: %w", err)
		}
		user := held.Key // an unknown or deleted user has no inventory
		asOf, err := inventoryAsOf(tx, user, app, contextID)
		if fresh = err == nil && asOf != 0 && asOf >= notBefore.UnixMicro(); !fresh {
			return err
		}
		rows, err := inventoryRows(tx, user, app, contextID)
		if err != nil {
			return err
		}
		sooner, err = renew(tx, user, app, contextID, rows)
		return err
	})
	if err == nil && sooner {
		s.Queued()
	}
	return fresh, err
}

func renew(tx *db.Tx, user int64, app int32, contextID string, rows []Row) (sooner bool, err error) {
	seen := make(map[int64]bool, len(rows))
	var items []int64
	for i := range rows {
		if id := rows[i].ItemID; id != 0 && !seen[id] {
			seen[id] = true
			items = append(items, id)
		}
	}
	if len(items) == 0 {
		return false, nil
	}
	prices, err := catalog.LockPrices(tx, items)
	if err != nil {
		return false, fmt.Errorf("lock prices: %w", err)
	}
	if err := copyPrices(tx, user, app, contextID); err != nil {
		return false, fmt.Errorf("copy prices: %w", err)
	}
	missing := unpriced(prices)
	if len(missing) > 0 {
		if _, sooner, err = catalog.QueueMissing(tx, missing); err != nil {
			return false, fmt.Errorf("queue: %w", err)
		}
	}
	return sooner, awaitPrices(tx, user, app, contextID, missing)
}
