package market

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/event"
)

// settleGrace is the time between the end of a hold and the moment at which an unsettled
// trade is overdue. Trades normally settle within seconds.
const settleGrace = 10 * time.Minute

// minPending is the shortest time after which a pending trade is overdue.
const minPending = 24 * time.Hour

// overdueBatch is the maximum number of overdue trades per state that one transaction
// reports.
const overdueBatch = 100

// Late holds the time limits of overdue trades.
type Late struct {
	BoughtBefore time.Time // a pending trade from this time or earlier is overdue
	HeldUntil    time.Time // a completed trade with a hold until this time or earlier is overdue
}

// ReportOverdue writes an event for each overdue trade that has no event yet. A pending
// trade is overdue after Options.Hold, but not before 24 hours. A completed trade is
// overdue 10 minutes after the end of its hold. Several processes may run ReportOverdue
// at the same time.
func (s *Service) ReportOverdue(ctx context.Context) error {
	for {
		var found []Trade
		err := s.o.Store.InSmallTx(ctx, func(tx *db.Tx) (err error) {
			late := Late{BoughtBefore: tx.Now().Add(-max(s.o.Hold, minPending)), HeldUntil: tx.Now().Add(-settleGrace)}
			if found, err = insertOverdue(tx, late, overdueBatch); err != nil {
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
