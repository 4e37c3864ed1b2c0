package view

import (
	"context"
	"time"

	"assay/internal/money"
)

// RatesDebug describes where exchange rates come from, and which a run would use now.
type RatesDebug struct {
	From        string         `json:"from"` // ecb, file, fixed, none
	Old         bool           `json:"old"`  // one of them is
	Rates       []RateDebug    `json:"rates"`
	ReadAt      *time.Time     `json:"readAt"` // when they were read
	NextAt      *time.Time     `json:"nextAt"` // when they are read again, at the earliest; null: at each run
	LastError   *string        `json:"lastError"`
	LastErrorAt *time.Time     `json:"lastErrorAt"`
	Requests    []RequestDebug `json:"requests"` // the last 50 of the instance that responds, newest first
}

// RateDebug is what one unit of a currency costs in the base currency.
type RateDebug struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     time.Time      `json:"date"`
	Old      bool           `json:"old"` // of more than three days before
}

// rates reports exchange rates without requesting any.
func (r *ProviderReader) rates(ctx context.Context) (RatesDebug, error) {
	out := RatesDebug{From: "none", Rates: []RateDebug{}, Requests: []RequestDebug{}}
	if r.o.Rates == nil {
		return out, nil
	}
	rates, state, err := r.o.Rates.Known(ctx)
	if err != nil {
		return out, err
	}
	now := r.o.Now()
	out.From, out.Old = r.o.Rates.Place(), len(rates.Old(now)) > 0
	out.ReadAt, out.LastError, out.LastErrorAt = when(state.ReadAt), text(state.LastError), when(state.LastErrorAt)
	for _, c := range rates.Currencies() {
		out.Rates = append(out.Rates, RateDebug{Currency: c, Rate: rates[c].Value, Date: rates[c].Date, Old: rates[c].Old(now)})
	}
	if r.o.RatesClient != nil {
		out.NextAt = when(state.DueAt)
		out.Requests = requests(r.o.RatesClient.Snapshot().Requests)
	}
	return out, nil
}
