package provider

import (
	"testing"
	"time"
)

func TestHistogram_BucketsAreCumulative(t *testing.T) {
	var h Histogram
	bounds := LatencyBounds()
	for _, bound := range bounds {
		h.add(bound)
		h.add(bound + 1)
	}
	for i, n := range h.Buckets {
		if want := uint64(2*i + 1); n != want {
			t.Errorf("bucket up to %v: got %d requests, want %d", bounds[i], n, want)
		}
	}
	if h.Count != uint64(2*len(bounds)) || h.Sum < time.Minute {
		t.Errorf("got %d requests with a total of %v, want two per bucket", h.Count, h.Sum)
	}
}
