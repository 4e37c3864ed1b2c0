package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
)

// alter changes the database directly. It fails the test unless each query changes a row.
func (s *server) alter(queries ...string) {
	s.t.Helper()
	db := s.open()
	for _, query := range queries {
		done, err := db.ExecContext(s.t.Context(), query)
		if err != nil {
			s.t.Fatalf("statement %s: got error %v, want none", query, err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			s.t.Fatalf("statement %s changed no row, want one (error %v)", query, err)
		}
	}
}

// wantResponse fails the test unless a response has the given status and code.
func wantResponse(t *testing.T, what string, wantStatus int, wantCode string, status int, response []byte, err error) {
	t.Helper()
	var p struct{ Code string }
	if err != nil || json.Unmarshal(response, &p) != nil || status != wantStatus || p.Code != wantCode {
		t.Errorf("%s: got %d %s, %v; want %d %s", what, status, response, err, wantStatus, wantCode)
	}
}

func TestLedger_RejectsTamperedResponses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t)
		s.start()
		const path, body = ledgerPath + "u1/entries", `{"kind":"deposit","currency":"USD","amount":500}`
		post := func(key, body string) (int, []byte) {
			t.Helper()
			status, response, err := s.keyed(path, key, body)
			if err != nil {
				t.Fatal(err)
			}
			return status, response
		}
		refused := func(what string, status int, code, key, body string) {
			t.Helper()
			got, response := post(key, body)
			wantResponse(t, what, status, code, got, response, nil)
		}
		post("a1", body)
		if _, err := s.open().ExecContext(t.Context(), `CREATE TABLE before AS SELECT * FROM idempotent_response`); err != nil {
			t.Fatal(err)
		}
		for what, edit := range map[string]string{
			"another body":    `UPDATE idempotent_response SET body = request`,
			"another status":  `UPDATE idempotent_response SET status = 409`,
			"another request": `UPDATE idempotent_response SET request = mac`,
			"another end":     `UPDATE idempotent_response SET expires_at = 9000000000000000`,
			"no seal":         `UPDATE idempotent_response SET version = 0`,
			"another seal":    `UPDATE idempotent_response SET mac = request`,
		} {
			s.alter(edit)
			refused(what, http.StatusServiceUnavailable, "response_tampered", "a1", body)
			s.alter(`DELETE FROM idempotent_response`, `INSERT INTO idempotent_response SELECT * FROM before`)
			if status, _ := post("a1", body); status != http.StatusCreated {
				t.Fatalf("after %s was restored: got status %d, want 201", what, status)
			}
		}
		s.alter(`INSERT INTO idempotent_response SELECT route, role, user_id, 'new', request, status, content_type, location, body, kept_at, expires_at, version, key_id, mac FROM idempotent_response`)
		refused("a planted response", http.StatusServiceUnavailable, "response_tampered", "new", body)
		s.alter(`UPDATE idempotent_response SET key_id = 'k77' WHERE key = 'a1'`)
		refused("a response of an unknown key", http.StatusServiceUnavailable, "ledger_key_missing", "a1", body)

		s.alter(`DELETE FROM idempotent_response`)
		refused("a lost response", http.StatusConflict, "response_lost", "a1", body)
		refused("a lost response to another body", http.StatusConflict, "response_lost", "a1", `{"kind":"deposit","currency":"USD","amount":5}`)
		if status, _ := post("new", body); status != http.StatusCreated {
			t.Errorf("unused key: got status %d, want 201", status)
		}
		listing := s.list("seller", 1, 100)[0]
		s.bought(listing, "u1")
		s.alter(`DELETE FROM idempotent_response`)
		for range 2 { // the error must not replace the stored response
			status, response, err := s.buy(listing, "u1", "buy "+listing)
			wantResponse(t, "a lost purchase", http.StatusConflict, "response_lost", status, response, err)
		}
		s.checkBalances("in the end", map[string]string{"u1": "900/0"})
		s.verified()
	})
}

// TestLedger_RejectsTamperedData checks the error codes that clients get.
func TestLedger_RejectsTamperedData(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t)
		s.start()
		s.deposit("u1", 1_000)
		listings := s.list("seller", 2, 100)
		sold := s.bought(listings[0], "u1")
		complete := func(what, code string) {
			t.Helper()
			status, response, err := s.call(http.MethodPost, "/api/trades/"+sold.ID+"/complete", nil)
			wantResponse(t, what, http.StatusServiceUnavailable, code, status, response, err)
		}
		s.alter(`UPDATE trade SET price = price + 1`)
		complete("a changed trade", "trade_tampered")
		s.alter(`UPDATE trade SET price = price - 1, key_id = 'k77'`)
		complete("a trade of an unknown key", "ledger_key_missing")

		loosen := `ALTER TABLE fee_rule_set DISABLE TRIGGER ALL`
		if on == onSQLite {
			loosen = `DROP TRIGGER fee_rule_set_update`
		}
		if _, err := s.open().ExecContext(t.Context(), loosen); err != nil {
			t.Fatal(err)
		}
		s.alter(`UPDATE fee_rule_set SET source = 'x'`)
		status, response, err := s.buy(listings[1], "u1", "k")
		wantResponse(t, "a purchase by changed rules", http.StatusServiceUnavailable, "fee_rules_tampered", status, response, err)

		unlock := `ALTER TABLE wallet_entry DISABLE TRIGGER ALL`
		if on == onSQLite {
			unlock = `DROP TRIGGER wallet_entry_update`
		}
		if _, err := s.open().ExecContext(t.Context(), unlock); err != nil {
			t.Fatal(err)
		}
		for what, edits := range map[string][2]string{
			"a changed newest entry": {
				`UPDATE wallet_entry SET balance = balance + 1 WHERE user_id = 'u1' AND number = 2`,
				`UPDATE wallet_entry SET balance = balance - 1 WHERE user_id = 'u1' AND number = 2`,
			},
			"a changed head": {
				`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`, `UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'u1'`,
			},
		} {
			s.alter(edits[0])
			status, response, err = s.call(http.MethodGet, ledgerPath+"u1/balance", nil)
			wantResponse(t, "a balance from "+what, http.StatusServiceUnavailable, "ledger_tampered", status, response, err)
			status, response, err = s.keyed(ledgerPath+"u1/entries", "k1", `{"kind":"deposit","currency":"USD","amount":5}`)
			wantResponse(t, "a posting to "+what, http.StatusServiceUnavailable, "ledger_tampered", status, response, err)
			s.alter(edits[1])
			if status, response, err = s.call(http.MethodGet, ledgerPath+"u1/balance", nil); err != nil || status != http.StatusOK {
				t.Errorf("balance without %s: got %d %s, %v, want 200", what, status, response, err)
			}
		}
		if n := rows(t, s.open(), `SELECT count(*) FROM wallet_entry WHERE user_id = 'u1'`); n[0] != "2" {
			t.Errorf("got %s entries, want 2: a refused request was posted", n[0])
		}

		s.alter(`UPDATE wallet_account SET key_id = 'k77' WHERE user_id = 'u1'`)
		status, response, err = s.keyed(ledgerPath+"u1/entries", "k", `{"kind":"deposit","currency":"USD","amount":5}`)
		wantResponse(t, "a posting to an account of an unknown key", http.StatusServiceUnavailable, "ledger_key_missing", status, response, err)
	})
}
