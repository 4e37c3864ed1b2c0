package view

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/user"
)

// InventoryValue is the value of an inventory at the end of a day.
type InventoryValue struct {
	Day          time.Time `json:"day"` // start of the day in UTC
	Value        money.Sum `json:"value"`
	ValueDecimal string    `json:"valueDecimal" format:"decimal"`
	Rows         int64     `json:"rows"`
	UnpricedRows int64     `json:"unpricedRows"`
}

// InventoryValues lists the values of an inventory over time, oldest first.
type InventoryValues struct {
	Currency   money.Currency   `json:"currency"`
	Rates      []ConversionRate `json:"rates,omitempty"`
	Items      []InventoryValue `json:"items"`
	NextCursor *string          `json:"nextCursor"`
}

// Values lists the values of a user's inventory at the end of each day, oldest first. A zero to
// means now. All values are converted to currency at the rates in force, because no rates are stored
// with the values. Values returns a fault.NotFound if the user does not exist.
func (r *UserReader) Values(ctx context.Context, userID string, from, to time.Time, currency money.Currency, after string, limit int) (InventoryValues, error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return InventoryValues{}, err
	}
	defer leave()
	convert, err := r.o.converter(ctx, currency, r.o.Now())
	if err != nil {
		return InventoryValues{}, err
	}
	var last int64
	if err := readCursor(after, "values", &last); err != nil {
		return InventoryValues{}, err
	}
	if last > 0 {
		from = time.UnixMicro(last + 1)
	}
	if to.IsZero() {
		to = r.o.Now()
	}
	key, ok, err := user.Key(ctx, r.o.Store, userID)
	if err != nil {
		return InventoryValues{}, err
	}
	if !ok {
		return InventoryValues{}, user.NotFound()
	}
	rows, err := inventory.Values(ctx, r.o.Store, key, from, to, limit+1)
	if err != nil {
		return InventoryValues{}, err
	}
	p := page(rows, limit, func(v *inventory.Value) InventoryValue {
		value := convert.total(v.Value)
		return InventoryValue{Day: v.Day, Value: value, ValueDecimal: value.String(), Rows: v.Assets, UnpricedRows: v.Unpriced}
	}, func(v *inventory.Value) *string { return cursor("values", v.Day.UnixMicro()) })
	return InventoryValues{Currency: convert.to, Rates: convert.used(), Items: p.Items, NextCursor: p.NextCursor}, nil
}
