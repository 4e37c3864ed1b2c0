package view

import (
	"fmt"
	"slices"
	"strings"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

// Fields are the figures that a request selects besides each price.
type Fields uint8

// The fields, in the order of FieldNames.
const (
	FieldInterval Fields = 1 << iota
	FieldAverage
	FieldUsedMarkets
)

// FieldNames returns the names of all fields.
func FieldNames() []string { return []string{"interval", "average", "usedMarkets"} }

// ParseFields reads names of fields with commas between them; none is none.
func ParseFields(text string) (Fields, error) {
	var f Fields
	if text == "" {
		return f, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		n := slices.Index(FieldNames(), name)
		if n < 0 {
			return 0, fmt.Errorf("must be one or several of %s, with commas between them", strings.Join(FieldNames(), ", "))
		}
		f |= 1 << n
	}
	return f, nil
}

// Figures are what fields= adds to a price. Those that were not requested are left
// out, as are all of an item that was never estimated.
type Figures struct {
	Interval    *Interval    `json:"interval,omitempty"`
	Average     *money.Micro `json:"average,omitempty"`
	UsedMarkets *int64       `json:"usedMarkets,omitempty"`
}

// Interval is where the price of a further honest market lies in about 80 % of
// cases. It is around the last consensus, also while another price is in force.
type Interval struct {
	Low  money.Micro `json:"low"`
	High money.Micro `json:"high"`
}

// intervalOf returns nil for an item that was never estimated.
func intervalOf(i pricing.Interval) *Interval {
	if i.High <= 0 {
		return nil
	}
	return &Interval{i.Low, i.High}
}

// figures returns nil where nothing was requested, or nothing is known.
func (f Fields) figures(of *prices.Figures) *Figures {
	if f == 0 || of.UsedMarkets == 0 {
		return nil
	}
	out := &Figures{}
	if f&FieldInterval != 0 {
		out.Interval = intervalOf(of.Interval)
	}
	if f&FieldAverage != 0 {
		out.Average = amount(of.Average)
	}
	if f&FieldUsedMarkets != 0 {
		out.UsedMarkets = new(int64(of.UsedMarkets))
	}
	return out
}
