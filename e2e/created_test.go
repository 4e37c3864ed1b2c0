package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// createdRow is a listing or trade in a list.
type createdRow struct{ ID, CreatedAt string }

// TestLists_FilterByTimeOfCreation creates trades at different times. It reads the trades of a
// period, page by page, with each kind of filter.
func TestLists_FilterByTimeOfCreation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t)
		s.start()
		listings := s.list("seller", 4, 100)
		s.deposit("buyer", 10_000)
		for _, id := range listings {
			s.bought(id, "buyer")
		}
		everything := all[createdRow](s, "/api/trades") // newest first
		if len(everything) != 4 {
			t.Fatalf("got %d trades, want 4", len(everything))
		}
		from, to := url.QueryEscape(everything[2].CreatedAt), url.QueryEscape(everything[0].CreatedAt)
		for query, want := range map[string][]createdRow{
			"from=" + from + "&to=" + to:               everything[1:3],
			"from=" + from:                             everything[:3],
			"to=" + to:                                 everything[1:],
			"from=" + to + "&to=" + from:               nil,
			"userId=seller&from=" + from + "&to=" + to: everything[1:3],
			"userId=buyer&appId=730&state=pending&from=" + from + "&to=" + to: everything[1:3],
			"state=settled&from=" + from:                                      nil,
		} {
			var got []createdRow
			for cursor, pages := "", 0; pages < 9; pages++ {
				var page struct {
					Items      []createdRow
					NextCursor string
				}
				s.get("/api/trades?limit=1&"+query+cursor, &page)
				got = append(got, page.Items...)
				if page.NextCursor == "" {
					break
				}
				cursor = "&cursor=" + page.NextCursor
			}
			if len(got) != len(want) {
				t.Errorf("trades with %s: got %v, want %v", query, got, want)
				continue
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("trades with %s: got %v, want %v", query, got, want)
				}
			}
		}

		var listed struct{ Items []createdRow }
		s.get("/api/listings?limit=1", &listed)
		newest := url.QueryEscape(listed.Items[0].CreatedAt)
		for query, want := range map[string]int{"from=" + newest: 4, "to=" + newest: 0, "userId=seller&from=" + newest: 4, "state=sold&from=" + newest: 4, "from=2999-01-01T00:00:00Z": 0} {
			var page struct{ Items []createdRow }
			if s.get("/api/listings?"+query, &page); len(page.Items) != want { // all listings were created at the same time
				t.Errorf("listings with %s: got %d, want %d", query, len(page.Items), want)
			}
		}

		var page struct{ NextCursor string }
		s.get("/api/listings?limit=3&from="+newest, &page) // the last listings have the same time
		var rest struct{ Items []createdRow }
		if s.get("/api/listings?from="+newest+"&cursor="+page.NextCursor, &rest); len(rest.Items) != 1 {
			t.Errorf("page after 3 of 4 listings: got %v, want one listing", rest.Items)
		}
		s.get("/api/trades?limit=1", &page)
		for _, query := range []string{"from=" + from + "&cursor=" + page.NextCursor, "from=yesterday", "to=2026-01-31"} {
			if status, response, err := s.call(http.MethodGet, "/api/trades?"+query, nil); err != nil || status != http.StatusBadRequest || !strings.Contains(string(response), "invalid_") {
				t.Errorf("%s: got %d %s, %v, want 400", query, status, response, err)
			}
		}
	})
}
