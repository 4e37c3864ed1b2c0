package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestListings_CancelTogether cancels active, sold, unknown and repeated listings in one
// request. A repeated request must return the same response.
func TestListings_CancelTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t)
		s.start()
		ids := s.list("seller", 3, 100)
		s.deposit("buyer", 100)
		s.bought(ids[1], "buyer")
		body, err := json.Marshal(map[string][]string{"ids": {ids[2], ids[1], "999999", ids[0], ids[2]}})
		if err != nil {
			t.Fatal(err)
		}
		var first []byte
		for range 2 {
			status, response, err := s.call(http.MethodPost, "/api/listings/cancel", bytes.NewReader(body))
			if err != nil || status != http.StatusOK {
				t.Fatalf("cancel listings: got %d %s, %v, want 200", status, response, err)
			}
			if first != nil && !bytes.Equal(first, response) {
				t.Errorf("repeated request: got %s, want %s", response, first)
			}
			first = response
		}
		var got struct {
			Items []struct {
				ID      string
				Status  int
				Listing *struct{ ID, State string }
				Error   *struct{ Code string }
			}
		}
		if err := json.Unmarshal(first, &got); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, i := range got.Items {
			what := ""
			if i.Listing != nil {
				what = i.Listing.ID + i.Listing.State
			}
			if i.Error != nil {
				what += i.Error.Code
			}
			line = append(line, fmt.Sprint(i.ID, " ", i.Status, " ", what))
		}
		want := []string{
			ids[2] + " 200 " + ids[2] + "cancelled", ids[1] + " 409 listing_sold", "999999 404 listing_not_found",
			ids[0] + " 200 " + ids[0] + "cancelled", ids[2] + " 200 " + ids[2] + "cancelled",
		}
		if strings.Join(line, "\n") != strings.Join(want, "\n") {
			t.Errorf("results of the cancelled listings: got %q, want %q", line, want)
		}

		many := `{"ids":["1"` + strings.Repeat(`,"1"`, 500) + `]}`
		for text, want := range map[string]int{many: http.StatusRequestEntityTooLarge, `{}`: 400, `{"ids":[1]}`: 400, `{"ids":["01"]}`: 400, `{"ids":[]}`: 200} {
			if status, response, err := s.call(http.MethodPost, "/api/listings/cancel", strings.NewReader(text)); err != nil || status != want {
				t.Errorf("body %.40s: got %d %s, %v, want %d", text, status, response, err, want)
			}
		}
	})
}
