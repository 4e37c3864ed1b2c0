package web

import (
	"testing"

	"assay/internal/money"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// A held price is drawn, so the markets that support it are near.
func TestMarketLines_ContainMarketsNearHeldPrice(t *testing.T) {
	lines := []view.MarketLine{
		{Title: "near", Points: []view.LinePoint{{Price: 105 * money.Scale}}},
		{Title: "supports", Points: []view.LinePoint{{Price: 260 * money.Scale}}},
		{Title: "far", Points: []view.LinePoint{{Price: 900 * money.Scale}}},
	}
	drawn, far := marketLines(lines, []chart.Point{{Value: 100}, {Value: 300}})
	if len(drawn) != 2 || drawn[1].Name != "supports" || len(far) != 1 || far[0] != "far" {
		t.Errorf("got the lines %+v and far %q, want the lines near 100 and near 300", drawn, far)
	}
}
