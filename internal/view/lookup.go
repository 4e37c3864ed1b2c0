package view

import (
	"context"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

// These statuses occur only in lookups, for items without a price.
const (
	StatusQueued  = "queued"  // in the missing-price queue
	StatusUnknown = "unknown" // no such item
)

// Lookup is the response of POST /api/prices/lookup, in the order of the request.
type Lookup struct {
	Items    []LookupItem     `json:"items"`
	Currency money.Currency   `json:"currency"`
	Rates    []ConversionRate `json:"rates,omitempty"`
}

// LookupItem is an item with its price. If it has no price, Status is the reason: noPrice,
// queued or unknown.
type LookupItem struct {
	ItemPrice
	PriceStatus    string     `json:"priceStatus"` // same as in an inventory row: noPrice if there is no price
	PriceCheckedAt *time.Time `json:"priceCheckedAt"`
	*Figures
	RetryAt *time.Time `json:"retryAt"` // next attempt of a queued item; null: immediately, or in progress

	postponed bool // queuing the item again makes its next attempt earlier
}

// ToQueue returns the items without a price that are not queued yet, or that would be
// attempted earlier if queued again.
func (l *Lookup) ToQueue() []catalog.Key {
	var out []catalog.Key
	for i := range l.Items {
		v := &l.Items[i]
		if v.postponed || v.Status == StatusUnknown || v.Status == pricing.NoPrice.String() {
			out = append(out, catalog.Key{AppID: v.AppID, Name: v.MarketHashName, Phase: v.Phase})
		}
	}
	return out
}

// Lookup returns the prices of items with the selected figures, one entry per requested key. The
// parameter to is the currency of the amounts ("": the base currency). Lookup does not queue items.
func (r *ItemReader) Lookup(ctx context.Context, keys []catalog.Key, fields Fields, to money.Currency) (Lookup, error) {
	now := r.o.Now()
	convert, err := r.o.converter(ctx, to, now)
	if err != nil {
		return Lookup{}, err
	}
	out := Lookup{Items: make([]LookupItem, len(keys)), Currency: convert.to, Rates: convert.used()}
	times := make([][3]time.Time, len(keys))
	err = r.prices.Lookup(ctx, keys, func(i int, p prices.Price, known bool) {
		v := lookupItem(keys[i], &p, known, now)
		v.CurrentPrice = convert.price(v.CurrentPrice)
		v.CurrentPriceDecimal = money.Decimal(v.CurrentPrice)
		v.Figures = fields.figures(&p.Figures)
		convert.figures(v.Figures)
		times[i] = [3]time.Time{p.UpdatedAt, p.CheckedAt, nextAttempt(p.DueAt, now)}
		v.PriceUpdatedAt, v.PriceCheckedAt = timeOrNil(&times[i][0]), timeOrNil(&times[i][1])
		if v.Status == StatusQueued {
			v.RetryAt = timeOrNil(&times[i][2])
		}
		out.Items[i] = v
	})
	return out, err
}

func lookupItem(k catalog.Key, p *prices.Price, known bool, now time.Time) LookupItem {
	priceStatus := currentStatus(p.Amount, p.Status, p.CheckedAt, now).String()
	status := priceStatus
	switch {
	case !known:
		status, priceStatus = StatusUnknown, pricing.NoPrice.String()
	case p.Amount <= 0 && p.Queued:
		status = StatusQueued
	}
	return LookupItem{
		ItemPrice:   ItemPrice{AppID: k.AppID, MarketHashName: k.Name, Phase: k.Phase, CurrentPrice: p.Amount, CurrentPriceDecimal: money.Decimal(p.Amount), Status: status},
		PriceStatus: priceStatus, postponed: status == StatusQueued && p.DueAt.After(p.SoonestAt),
	}
}

// nextAttempt returns the next attempt of a queued item. It returns the zero time if the item
// is due.
func nextAttempt(due, now time.Time) time.Time {
	if due.After(now) {
		return due
	}
	return time.Time{}
}

// timeOrNil is like when, but does not copy the time.
func timeOrNil(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}

// lookupSize is the approximate length of one item in the response, in bytes.
const lookupSize = 320

// JSON encodes the lookup as json.Marshal would. Reflection would take most of the time of a
// request.
func (l *Lookup) JSON() []byte {
	b := make([]byte, 0, lookupSize*(len(l.Items)+1))
	b = append(b, `{"items":[`...)
	for i := range l.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.Items[i].appendJSON(b)
	}
	b = append(b, `],"currency":`...)
	b = appendText(b, string(l.Currency))
	return append(appendRates(b, l.Rates), '}')
}

func (v *LookupItem) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"appId":`...), int64(v.AppID), 10)
	b = appendText(append(b, `,"marketHashName":`...), v.MarketHashName)
	b = appendText(append(b, `,"phase":`...), v.Phase)
	b = v.CurrentPrice.AppendText(append(b, `,"currentPrice":`...))
	b = v.CurrentPriceDecimal.AppendJSON(append(b, `,"currentPriceDecimal":`...))
	b = appendText(append(b, `,"status":`...), v.Status)
	b = appendTime(append(b, `,"priceUpdatedAt":`...), v.PriceUpdatedAt)
	b = appendText(append(b, `,"priceStatus":`...), v.PriceStatus)
	b = appendTime(append(b, `,"priceCheckedAt":`...), v.PriceCheckedAt)
	b = v.Figures.appendJSON(b)
	b = appendTime(append(b, `,"retryAt":`...), v.RetryAt)
	return append(b, '}')
}

func (f *Figures) appendJSON(b []byte) []byte {
	if f == nil {
		return b
	}
	if i := f.Interval; i != nil {
		b = i.Low.AppendText(append(b, `,"interval":{"low":`...))
		b = append(i.High.AppendText(append(b, `,"high":`...)), '}')
	}
	if f.Average != nil {
		b = f.Average.AppendText(append(b, `,"average":`...))
	}
	if f.UsedMarkets != nil {
		b = strconv.AppendInt(append(b, `,"usedMarkets":`...), *f.UsedMarkets, 10)
	}
	return b
}

// appendRates appends the member rates, unless there are no rates.
func appendRates(b []byte, rates []ConversionRate) []byte {
	if len(rates) == 0 {
		return b
	}
	text, _ := json.Marshal(rates) // encoding a rate never fails
	return append(append(b, `,"rates":`...), text...)
}

// appendText appends a JSON string. The text is valid UTF-8.
func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // fails only for invalid UTF-8
	return b
}

func appendTime(b []byte, t *time.Time) []byte {
	if t == nil {
		return append(b, `null`...)
	}
	b = t.UTC().AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}
