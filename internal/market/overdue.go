package market

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/event"
)

// settleGrace is how long after the end of its hold a trade that has not settled is
// overdue. Trades settle within seconds, unless something keeps them from it.
const settleGrace = 10 * time.Minute

// leastPending is how long a trade may be pending, where credits are held for less.
const leastPending = 24 * time.Hour

// overdueAtOnce is how many overdue trades are reported in one transaction.
const overdueAtOnce = 100

// Late holds the moments from which trades are overdue.
type Late struct {
	BoughtBefore time.Time // and still pending
	HeldUntil    time.Time // or earlier, and not settled
}

// ReportOverdue writes an event for each trade that is overdue and was not reported
// before: one that is pending for longer than a seller's credit is held (and than a day), or whose hold
// ended some time ago and which has not settled. Several processes may do this at once.
func (s *Service) ReportOverdue(ctx context.Context) error {
	for {
		var found []Trade
		err := s.o.InTx(ctx, func(tx *db.Tx) (err error) {
			late := Late{BoughtBefore: tx.Now().Add(-max(s.o.Hold, leastPending)), HeldUntil: tx.Now().Add(-settleGrace)}
			if found, err = noteOverdue(tx, late, overdueAtOnce); err != nil {
				return err
			}
			for i := range found {
				if err := event.Add(tx, found[i].overdue()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("overdue trades: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
	}
}

func (t *Trade) overdue() event.TradeOverdue {
	e := event.TradeOverdue{
		TradeID: strconv.FormatInt(t.ID, 10), ListingID: strconv.FormatInt(t.ListingID, 10), SellerID: t.Seller, BuyerID: t.Buyer,
		State: string(t.State), Since: t.CreatedAt,
	}
	if t.State == Completed {
		e.Since = t.SettleAt
	}
	return e
}
