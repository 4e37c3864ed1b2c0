package providertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/provider"
)

// CheckFetch fetches call and checks the quotes and the number of requests. The order of the
// quotes does not matter.
func CheckFetch(t testing.TB, src provider.Provider, call provider.Call, want []provider.Quote) provider.Result {
	t.Helper()
	var sink Sink
	call.Meter = new(provider.Meter)
	result, err := src.Fetch(t.Context(), call, &sink)
	if err != nil {
		t.Fatalf("fetch: got error %v, want none", err)
	}
	if diff := cmp.Diff(sorted(want), sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
	if got, want := call.Meter.Requests(), int64(requests(src, call)); got != want {
		t.Errorf("got %d requests, want %d as described", got, want)
	}
	return result
}

// CheckError fetches call n times. The last fetch must fail with an error of this kind that
// contains detail. The other fetches must succeed.
func CheckError(t testing.TB, src provider.Provider, call provider.Call, n int, kind provider.Kind, detail string) {
	t.Helper()
	for i := 1; i < n; i++ {
		if _, err := src.Fetch(t.Context(), call, &Sink{}); err != nil {
			t.Fatalf("fetch %d: got error %v, want none", i, err)
		}
	}
	_, err := src.Fetch(t.Context(), call, &Sink{})
	if provider.KindOf(err) != kind || !strings.Contains(fmt.Sprint(err), detail) {
		t.Errorf("fetch %d: got error %v, want kind %s with %q", n, err, kind, detail)
	}
}

// requests returns the described number of requests for a call.
func requests(src provider.Provider, call provider.Call) int {
	for _, f := range src.Describe().Files {
		if f.Key == call.File {
			return max(f.Requests, 1)
		}
	}
	return 1
}
