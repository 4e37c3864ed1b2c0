package view

import (
	"fmt"
	"slices"
	"strings"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

// Fields is the set of optional figures that a request selects for each price. For an export, it can
// also have members of PublishedPrice. Without any of them, all members are selected.
type Fields uint16

// The figures, in the order of FieldNames, and the members, in the order of MemberNames.
const (
	FieldInterval Fields = 1 << iota
	FieldAverage
	FieldUsedMarkets
	fieldAppID
	fieldMarketHashName
	fieldPhase
	fieldCurrentPrice
	fieldCurrentPriceDecimal
	fieldPriceStatus
	fieldPriceUpdatedAt
	fieldPriceCheckedAt

	allFigures = FieldInterval | FieldAverage | FieldUsedMarkets
)

// FieldNames returns the names of all figures.
func FieldNames() []string { return []string{"interval", "average", "usedMarkets"} }

// MemberNames returns the names of all figures and of all members of a PublishedPrice.
func MemberNames() []string {
	return append(FieldNames(), "appId", "marketHashName", "phase",
		"currentPrice", "currentPriceDecimal", "priceStatus", "priceUpdatedAt", "priceCheckedAt")
}

// ParseFields parses a comma-separated list of figures. An empty text selects no figures.
func ParseFields(text string) (Fields, error) { return parse(text, FieldNames()) }

// ParseMembers parses a comma-separated list of figures and members. An empty text selects all members
// and no figures.
func ParseMembers(text string) (Fields, error) { return parse(text, MemberNames()) }

func parse(text string, known []string) (Fields, error) {
	var f Fields
	if text == "" {
		return f, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		n := slices.Index(known, name)
		if n < 0 {
			return 0, fmt.Errorf("must be a comma-separated list of: %s", strings.Join(known, ", "))
		}
		f |= 1 << n
	}
	return f, nil
}

// Figures holds the figures that the query parameter fields selects, and omits all others. An
// item without an estimate has no figures.
type Figures struct {
	Interval    *Interval    `json:"interval,omitempty"`
	Average     *money.Micro `json:"average,omitempty"`
	UsedMarkets *int64       `json:"usedMarkets,omitempty"`
}

// Interval is the range that contains the price of another reliable market in about 80 % of
// cases. It is based on the last consensus, even if the current price differs from it.
type Interval struct {
	Low  money.Micro `json:"low"`
	High money.Micro `json:"high"`
}

// intervalOf converts an interval. It returns nil for an item without an estimate.
func intervalOf(i pricing.Interval) *Interval {
	if i.High <= 0 {
		return nil
	}
	return &Interval{i.Low, i.High}
}

// has reports whether a member of an export is selected.
func (f Fields) has(member Fields) bool { return f&^allFigures == 0 || f&member != 0 }

// figuresSelected reports whether a figure is selected.
func (f Fields) figuresSelected() bool { return f&allFigures != 0 }

// figures returns the selected figures. It returns nil if no field is selected or the item has
// no estimate.
func (f Fields) figures(of *prices.Figures) *Figures {
	if !f.figuresSelected() || of.UsedMarkets == 0 {
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
