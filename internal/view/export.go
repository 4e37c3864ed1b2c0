package view

import (
	"strconv"
	"time"

	"assay/internal/money"
)

// PublishedPrice is the price of an item in an export or in the change feed. The last estimate
// sets its status: it does not become stale as time passes. Compare PriceCheckedAt with the
// clock instead.
type PublishedPrice struct {
	AppID               int32         `json:"appId"`
	MarketHashName      string        `json:"marketHashName"`
	Phase               string        `json:"phase"`
	CurrentPrice        money.Micro   `json:"currentPrice"`
	CurrentPriceDecimal money.Decimal `json:"currentPriceDecimal"`
	PriceStatus         string        `json:"priceStatus"`
	PriceUpdatedAt      *time.Time    `json:"priceUpdatedAt"`
	PriceCheckedAt      *time.Time    `json:"priceCheckedAt"`
	*Figures

	selected Fields // members that AppendJSON writes besides the identity
}

// Export identifies a consistent state of all prices.
type Export struct {
	Change   int64 // number of the last price change in it
	Version  int64 // increases with each commit that changes or confirms a price
	Currency money.Currency
	Rates    []ConversionRate // empty: no conversion
}

// Manifest is the metadata of an export.
type Manifest struct {
	Change   string           `json:"change"` // number of the last price change; 0: none yet
	Time     time.Time        `json:"time"`
	Items    int64            `json:"items"` // items with a price
	Currency money.Currency   `json:"currency"`
	Rates    []ConversionRate `json:"rates,omitempty"`
}

// AppendJSON appends the price as json.Marshal would encode it, without the members that an export
// leaves out. Reflection would take most of the time of an export.
func (p *PublishedPrice) AppendJSON(b []byte) []byte {
	return append(p.appendMembers(append(b, '{')), '}')
}

func (p *PublishedPrice) appendMembers(b []byte) []byte {
	b = strconv.AppendInt(append(b, `"appId":`...), int64(p.AppID), 10)
	b = appendText(append(b, `,"marketHashName":`...), p.MarketHashName)
	b = appendText(append(b, `,"phase":`...), p.Phase)
	if p.selected.has(fieldCurrentPrice) {
		b = p.CurrentPrice.AppendText(append(b, `,"currentPrice":`...))
	}
	if p.selected.has(fieldCurrentPriceDecimal) {
		b = p.CurrentPriceDecimal.AppendJSON(append(b, `,"currentPriceDecimal":`...))
	}
	if p.selected.has(fieldPriceStatus) {
		b = appendText(append(b, `,"priceStatus":`...), p.PriceStatus)
	}
	if p.selected.has(fieldPriceUpdatedAt) {
		b = appendTime(append(b, `,"priceUpdatedAt":`...), p.PriceUpdatedAt)
	}
	if p.selected.has(fieldPriceCheckedAt) {
		b = appendTime(append(b, `,"priceCheckedAt":`...), p.PriceCheckedAt)
	}
	return p.Figures.appendJSON(b)
}
