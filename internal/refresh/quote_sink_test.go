package refresh

import (
	"slices"
	"testing"
)

func TestResponse_FetchesAreOrderedByMarket(t *testing.T) {
	a := &quoteSink{counts: map[int64]*MarketFetch{}}
	want := []int64{1, 2, 3, 5, 8, 13, 21, 34}
	for _, market := range []int64{21, 3, 1, 34, 8, 2, 13, 5} {
		a.count(market)
	}
	var got []int64
	for _, f := range a.fetches() {
		got = append(got, f.MarketID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the markets %v, want %v", got, want)
	}
}
