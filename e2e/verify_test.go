package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These are the exit codes of a verification, besides 0.
const (
	exitLedgerFailed = 8
	exitIncomplete   = 9
)

// verification contains the required fields of a report.
type verification struct {
	OK     bool
	Status string
	Checks []struct{ Name, Status string }
}

// failed returns the checks that did not pass.
func (v *verification) failed() (names []string) {
	for _, c := range v.Checks {
		if c.Status == "fail" || c.Status == "skipped" {
			names = append(names, c.Name)
		}
	}
	return names
}

// command runs the program with the settings of the server. It must exit with the given code.
func (s *server) command(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), binary, args...)
	cmd.Env = s.env
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	got := 0
	if e := cmd.Run(); e != nil {
		exit, ok := errors.AsType[*exec.ExitError](e)
		if !ok {
			s.t.Fatalf("cannot run assay: %v", e)
		}
		got = exit.ExitCode()
	}
	if got != code {
		s.t.Errorf("%v: got exit code %d, want %d\n%s%s", args, got, code, out.String(), err.String())
	}
	return out.String(), err.String()
}

// verified verifies the whole ledger, which must be valid.
func (s *server) verified() {
	s.t.Helper()
	s.command(0, "verify", "--all")
}

// verifies checks the verification of a user over HTTP, with the command line, and as part of
// the whole ledger.
func (s *server) verifies(when, user, status, check string, code int) {
	s.t.Helper()
	var over, by, all verification
	s.get(ledgerPath+user+"/verify", &over)
	for how, v := range map[string]*verification{"verify " + user: &by, "verify --all": &all} {
		out, reported := s.command(code, append(strings.Fields(how), "--json")...)
		if err := json.Unmarshal([]byte(out), v); err != nil {
			s.t.Errorf("%s: cannot decode the report (%v): %s%s", how, err, out, reported)
		}
	}
	for how, v := range map[string]*verification{"over HTTP": &over, "by command": &by, "of all": &all} {
		if v.Status != status || v.OK != (status == "ok") || check != "" && !slices.Contains(v.failed(), check) {
			s.t.Errorf("%s, %s: got %s with the failed checks %v; want %s, %s", when, how, v.Status, v.failed(), status, check)
		}
	}
}

// awaitVerification waits for a scheduled verification with the given status.
func (s *server) awaitVerification(status string) {
	s.t.Helper()
	var health struct {
		Details struct{ Ledger struct{ Status string } }
	}
	s.await("a verification with status "+status, func() bool {
		return s.tryGet("/api/health", &health) == nil && health.Details.Ledger.Status == status
	})
	_, metrics, err := s.call(http.MethodGet, "/metrics", nil)
	if want := fmt.Sprintf("assay_ledger_verification{status=%q} 1", status); err != nil || !strings.Contains(string(metrics), want) {
		s.t.Errorf("the metrics lack %s, error %v", want, err)
	}
	resp, err := client.Get("http://" + s.addr + "/api/health")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || strings.Contains(string(text), "ledger") {
		s.t.Errorf("the public response contains ledger data, or cannot be read: %s, %v", text, err)
	}
}

// problems returns the ledger events, as "user status check check".
func problems(t *testing.T, db *sql.DB) (out []string) {
	t.Helper()
	for _, row := range rows(t, db, `SELECT data FROM event WHERE kind = 'ledger.problem' ORDER BY id`) {
		var p struct {
			UserID, Status string
			Checks         []string
		}
		if err := json.Unmarshal([]byte(row), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join(append([]string{p.UserID, p.Status}, p.Checks...), " "))
	}
	return out
}

// TestVerify_ReportsTamperingEverywhere changes the database of a server that verifies its
// ledger every second.
func TestVerify_ReportsTamperingEverywhere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		s := on.newServer(t, "WALLET_VERIFY_SCHEDULE=every 1s")
		s.start()
		for _, amount := range []int{500, 300, 200} {
			s.deposit("u1", amount)
		}
		s.bought(s.list("u2", 1, 400)[0], "u1")
		s.verifies("before", "u1", "ok", "", 0)
		s.awaitVerification("ok")
		db := s.open()
		if events := problems(t, db); len(events) > 0 {
			t.Fatalf("got events %q, want none", events)
		}
		edit := func(query string) {
			t.Helper()
			done, err := db.ExecContext(t.Context(), query)
			if err != nil {
				t.Fatalf("statement %s: got error %v, want none", query, err)
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				t.Fatalf("statement %s changed no row, want one (error %v)", query, err)
			}
		}
		loosen, tighten := `ALTER TABLE wallet_entry DISABLE TRIGGER ALL`, `ALTER TABLE wallet_entry ENABLE ALWAYS TRIGGER wallet_entry_kept`
		if on == onSQLite {
			loosen = `DROP TRIGGER wallet_entry_update`
			if err := db.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE name = 'wallet_entry_update'`).Scan(&tighten); err != nil {
				t.Fatal(err)
			}
		}
		alter := func(query string) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ name, user, do, undo, check string }{
			{"a balance raised", "u1", `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`, `UPDATE wallet_account SET balance = balance - 1 WHERE user_id = 'u1'`, "cached_balance"},
			{"an amount changed", "u1", `UPDATE wallet_entry SET amount = amount + 1 WHERE user_id = 'u1' AND number = 2`, `UPDATE wallet_entry SET amount = amount - 1 WHERE user_id = 'u1' AND number = 2`, "entry_hash"},
			{"a fee one cent too low", "house:fee", `UPDATE trade SET fee = fee - 1, net = net + 1`, `UPDATE trade SET fee = fee + 1, net = net - 1`, "fee_crosscheck"},
		} {
			before := len(problems(t, db))
			alter(loosen)
			edit(c.do)
			s.verifies(c.name, "u1", "failed", c.check, exitLedgerFailed)
			s.awaitVerification("failed")
			s.await("the event of "+c.name, func() bool {
				return slices.ContainsFunc(problems(t, db)[before:], func(p string) bool {
					return strings.HasPrefix(p, c.user) && slices.Contains(strings.Fields(p), c.check)
				})
			})
			edit(c.undo)
			alter(tighten)
			s.verifies("after "+c.name, "u1", "ok", "", 0)
			s.awaitVerification("ok")
		}
		if _, err := s.stop(); err != nil {
			t.Fatal(err)
		}
		damageCheckpoint(t, s)
		s.start()
		s.verifies("without the stored checkpoint", "u1", "incomplete", "anchor_match", exitIncomplete)
		s.awaitVerification("incomplete")
		s.await("the event of the incomplete verification", func() bool { return slices.Contains(problems(t, db), " incomplete anchor_match") })
	})
}

// damageCheckpoint flips a bit of the newest checkpoint, which the stop of the server has
// written.
func damageCheckpoint(t *testing.T, s *server) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "checkpoints", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got no checkpoint in the directory, want at least one (error %v)", err)
	}
	newest := slices.Max(files)
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(newest, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
