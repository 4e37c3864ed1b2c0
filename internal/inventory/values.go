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

// add adds rows that have the same value per unit. amount is the total amount of these
// rows.
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

// RecordValues records the value of every inventory for the last complete UTC day, unless that is
// already done. Call it on the day after, at any time. After a crash, call it again. If it is not
// called on the day after, the day has no values.
func RecordValues(ctx context.Context, s *db.DB) error {
	ended := s.Clock().UTC().Truncate(day).Add(-day)
	done, err := recordedDay(ctx, s)
	// A recorded day after today does not count, because the clock was ahead. Today counts, so that
	// a process with a slower clock does not record the day before again.
	if err != nil || !done.Before(ended) && !done.After(ended.Add(day)) {
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
