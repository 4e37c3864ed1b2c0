package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/randtest"
)

// user contains the required fields of a user.
type user struct {
	UserID               string
	SteamID, DisplayName *string
	Leaderboard          bool
}

// deleteUser deletes a user. If code is not empty, the request must fail with it.
func (s *server) deleteUser(id, code string) {
	s.t.Helper()
	want := http.StatusNoContent
	if code != "" {
		want = http.StatusConflict
	}
	status, response, err := s.call(http.MethodDelete, "/api/users/"+id, nil)
	if err != nil || status != want || code == "" && len(response) != 0 || code != "" && !strings.Contains(string(response), `"code":"`+code+`"`) {
		s.t.Errorf("delete %s: got %d %s, %v, want %d %s", id, status, response, err, want, code)
	}
}

// putUser stores a user and returns the stored user.
func (s *server) putUser(id, body string) (u user) {
	s.t.Helper()
	status, response, err := s.call(http.MethodPut, "/api/users/"+id, strings.NewReader(body))
	if err != nil || status != http.StatusOK || json.Unmarshal(response, &u) != nil {
		s.t.Fatalf("put user %s: got %d %s, %v, want 200", id, status, response, err)
	}
	return u
}

// TestUsers_DeletionKeepsLedger takes a seller and a buyer from a push to a settled trade. It
// tests every reason that prevents a deletion, deletes both users and creates the seller
// again.
func TestUsers_DeletionKeepsLedger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t, "TRADE_HOLD=1s")
		s.start()
		const steamID = "76561198000000001"
		listings := s.list("seller", 3, 1_000)
		s.putUser("seller", `{"displayName":"Ada"}`)
		s.deposit("buyer", 1_000)
		s.deleteUser("seller", "user_has_listings")
		trade := s.bought(listings[0], "buyer")
		if status, response, err := s.call(http.MethodPost, "/api/listings/cancel", strings.NewReader(`{"ids":["`+listings[1]+`","`+listings[2]+`"]}`)); status != http.StatusOK {
			t.Fatalf("cancel listings: got %d %s, %v, want 200", status, response, err)
		}
		s.deleteUser("seller", "user_has_trades")
		s.deleteUser("buyer", "user_has_trades")
		s.moveTrade(trade.ID, "complete", http.StatusOK)
		s.await("the ranks", func() bool { return len(s.ranked()) == 2 })
		s.await("the settlement", func() bool {
			s.get("/api/trades/"+trade.ID, &trade)
			return trade.State == "settled"
		})
		s.deleteUser("seller", "user_has_money")
		body := `{"kind":"withdrawal","currency":"USD","amount":950}`
		if status, response, err := s.keyed(ledgerPath+"seller/entries", "withdrawal", body); status != http.StatusCreated {
			t.Fatalf("withdrawal: got %d %s, %v, want 201", status, response, err)
		}
		var page struct{ Rows int }
		if s.get("/api/inventory/seller", &page); page.Rows != 3 {
			t.Errorf("got %d rows after the refused deletions, want 3", page.Rows)
		}
		s.putUser("seller", `{"displayName":"Ada","steamId":"`+steamID+`"}`)
		s.deleteUser("seller", "")
		s.deleteUser("seller", "")
		s.deleteUser("buyer", "")

		for _, gone := range []string{"/api/users/seller", "/api/inventory/seller", "/api/users/buyer"} {
			if status, response, err := s.call(http.MethodGet, gone, nil); status != http.StatusNotFound || !strings.Contains(string(response), "user_not_found") {
				t.Errorf("%s: got %d %s, %v, want 404 user_not_found", gone, status, response, err)
			}
		}
		for _, empty := range []string{"/api/listings?userId=seller", "/api/trades?userId=buyer"} {
			if rows := all[listed](s, empty); len(rows) != 0 {
				t.Errorf("%s: got rows %v, want none", empty, rows)
			}
		}
		s.await("ranks without the deleted users", func() bool { return len(s.ranked()) == 0 })
		other := s.putUser("other", `{"steamId":"`+steamID+`"}`)
		if *other.SteamID != steamID {
			t.Errorf("other user: got %+v, want the Steam id %s of the deleted one", other, steamID)
		}

		// The ledger and the trades must keep the users and pass verification.
		if s.get("/api/trades/"+trade.ID, &trade); trade.SellerID != "seller" || trade.BuyerID != "buyer" || trade.Net != 950 {
			t.Errorf("trade of the deleted user: got %+v, want it unchanged", trade)
		}
		s.checkBalances("after the deletion", map[string]string{"seller": "0/0", "buyer": "0/0", "house:fee": "50/0"})
		for _, id := range []string{"seller", "buyer"} {
			var v verification
			if s.get(ledgerPath+id+"/verify", &v); v.Status != "ok" {
				t.Errorf("verification of %s: got %s with the failed checks %v, want ok", id, v.Status, v.failed())
			}
			if entries := all[listed](s, ledgerPath+id+"/entries"); len(entries) < 3 {
				t.Errorf("ledger of %s: got %d entries, want at least 3", id, len(entries))
			}
		}
		s.command(0, "verify", "--all")

		// A repeated purchase returns the same response. A push creates the user again.
		if again := s.bought(listings[0], "buyer"); again.ID != trade.ID || again.State != "pending" {
			t.Errorf("repeated purchase: got %+v, want the same pending trade", again)
		}
		s.push("seller", 730, []asset{{AssetID: "7", MarketHashName: "Item"}})
		var created user
		if s.get("/api/users/seller", &created); created.SteamID != nil || created.DisplayName != nil || !created.Leaderboard {
			t.Errorf("new user of the same name: got %+v, want one without a name or Steam id", created)
		}
		if s.get("/api/inventory/seller", &page); page.Rows != 1 {
			t.Errorf("push of the new user: got %d rows, want 1", page.Rows)
		}
	})
}

// listed is a row of any list.
type listed struct{ ID string }

// ranked returns the display names of the leaderboard.
func (s *server) ranked() (names []string) {
	s.t.Helper()
	var board struct {
		Items []struct{ DisplayName string }
	}
	s.get("/api/community/top-traders?period=all", &board)
	for _, i := range board.Items {
		names = append(names, i.DisplayName)
	}
	return names
}

// TestUsers_DeletionIsAtomicAfterKills kills a server at random times while it deletes a user
// with many rows. Then it deletes the user again.
func TestUsers_DeletionIsAtomicAfterKills(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const rows = 5_000
		s := on.newServer(t)
		r := randtest.New(t)
		s.start()
		items := make([]asset, rows)
		for i := range items {
			items[i] = asset{AssetID: strconv.Itoa(i), MarketHashName: fmt.Sprint("Item ", i%50), Inspect: "S1A2D3"}
		}
		whole, gone := 0, 0
		for round := range randtest.Count(6, 60) {
			s.push("u", 730, items)
			s.putUser("u", `{"displayName":"Ada"}`)
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _, _ = s.call(http.MethodDelete, "/api/users/u", nil) // killed: any response is valid
			}()
			time.Sleep(time.Duration(r.IntN(80)) * time.Millisecond)
			s.kill()
			<-sent
			s.start()
			var page struct{ Rows int }
			switch status, response, err := s.call(http.MethodGet, "/api/users/u", nil); {
			case err != nil:
				t.Fatal(err)
			case status == http.StatusNotFound:
				gone++
				s.putUser("u", `{}`) // makes any remaining rows readable
				if s.get("/api/inventory/u", &page); page.Rows != 0 {
					t.Errorf("round %d: got %[2]d rows of the deleted user, want none", round, page.Rows)
				}
			default:
				whole++
				var u user
				if err := json.Unmarshal(response, &u); err != nil || u.DisplayName == nil {
					t.Errorf("round %d: got the user %s, error %v, want one with a name", round, response, err)
				}
				if s.get("/api/inventory/u", &page); page.Rows != rows {
					t.Errorf("round %d: got %d rows of the user that still exists, want %d", round, page.Rows, rows)
				}
			}
			s.deleteUser("u", "")
		}
		t.Logf("%d deleted, %d not", gone, whole)
	})
}
