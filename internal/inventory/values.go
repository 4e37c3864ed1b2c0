package inventory

import (
	"context"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

// Value is the value of a user's inventory at the end of a day.
type Value struct {
	User     int64     // key of the user
	Day      time.Time // start of the day in UTC
	Value    money.Sum // in the base currency
	Assets   int64     // rows
	Unpriced int64     // rows without a value
}

// add counts rows with the same value of one unit. amount is their total amount.
func (v *Value) add(value money.Micro, amount, rows int64) {
	v.Assets += rows
	if value == 0 {
		v.Unpriced += rows
	}
	v.Value = v.Value.Add(value, amount)
}

// day is the interval of values.
const day = 24 * time.Hour

// usersAtOnce is the number of users whose values one transaction records.
const usersAtOnce = 200

// RecordValues records the value of every inventory at the end of the last day, unless it has done
// so. It may be called at any time after the end of the day, and again after a crash. A day without
// a call has no values.
func RecordValues(ctx context.Context, s *db.DB) error {
	ended := s.Clock().UTC().Truncate(day).Add(-day)
	done, err := recordedDay(ctx, s)
	if err != nil || !done.Before(ended) {
		return err
	}
	for last, more := int64(0), true; more; {
		err := s.InTx(ctx, func(t *db.Tx) (err error) {
			last, more, err = recordValues(t, last, ended)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.InTx(ctx, func(t *db.Tx) error { return setRecordedDay(t, ended) })
}
