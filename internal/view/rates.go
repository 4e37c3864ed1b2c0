package view

import (
	"context"
	"time"

	"assay/internal/money"
)

// RatesDebug describes the origin of exchange rates, and the rates that a run would use now.
type RatesDebug struct {
	From        string         `json:"from"` // ecb, file, fixed or none
	Old         bool           `json:"old"`  // at least one rate is old
	Rates       []RateDebug    `json:"rates"`
	ReadAt      *time.Time     `json:"readAt"` // last read of the rates
	NextAt      *time.Time     `json:"nextAt"` // earliest next read of the rates; null: each run reads them
	LastError   *string        `json:"lastError"`
	LastErrorAt *time.Time     `json:"lastErrorAt"`
	Requests    []RequestDebug `json:"requests"` // last 50 of the responding instance, newest first
}

// RateDebug is the value of one unit of a currency in the base currency.
type RateDebug struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     time.Time      `json:"date"`
	Old      bool           `json:"old"` // more than three days old
}

// rates describes exchange rates. It sends no request.
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
	out.From, out.Old = r.o.Rates.Origin(), len(rates.Old(now)) > 0
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
