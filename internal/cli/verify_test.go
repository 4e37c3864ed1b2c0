package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// ledgerDir creates a data directory with a ledger in which user u1 has 500 cents. It then runs the
// SQL statement in change.
func ledgerDir(t *testing.T, change string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := db.Open(t.Context(), db.Options{Path: filepath.Join(dir, "assay.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	key := wallet.Key{ID: "k1", Bytes: bytes.Repeat([]byte{0x11}, 32)}
	keys, err := wallet.NewRing([]wallet.Key{key})
	if err != nil {
		t.Fatal(err)
	}
	ledger := &wallet.Ledger{Keys: keys}
	if err := s.InTx(t.Context(), func(tx *db.Tx) error {
		if err := wallet.SetLedgerKey(tx, keys.Marks()[0]); err != nil {
			return err
		}
		_, err := ledger.Deposit(tx, wallet.Account{User: "u1", Currency: "USD"}, 500, wallet.Request{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if change != "" {
		raw := dbtest.Database{Engine: dbtest.SQLite, Path: filepath.Join(dir, "assay.db")}.Raw(t)
		defer raw.Close()
		if _, err := raw.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func verifyIn(t *testing.T, dir, key string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Program{
		Args: append([]string{"verify", "--data-dir", dir}, args...), Environ: []string{"WALLET_LEDGER_KEY=" + key, "ADMIN_API_TOKEN=" + strings.Repeat("a", 32)},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err, Now: time.Now,
	}.Run(t.Context())
	return code, out.String(), err.String()
}

func TestVerify_ExitCodes(t *testing.T) {
	right, wrong := "k1:"+strings.Repeat("11", 32), "k2:"+strings.Repeat("22", 32)
	intact := ledgerDir(t, "")
	changed := ledgerDir(t, `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`)
	for _, c := range []struct {
		name, dir, key string
		args           []string
		code           int
		reports        string
	}{
		{"valid ledger", intact, right, []string{"--all"}, exitOK, "ledger: ok, 2 entries in 2 accounts, 1 transaction, in "},
		{"valid wallet", intact, right, []string{"u1", "--database"}, exitOK, "u1: ok, 1 entry in 1 account\n"},
		{"changed ledger", changed, right, []string{"--all"}, exitLedgerFailed, "cached_balance: u1 USD: The account's balance is not the sum of its entries. Expected 500, found 501."},
		{"changed wallet", changed, right, []string{"u1", "--database"}, exitLedgerFailed, "u1: failed, 1 entry in 1 account\nhead_mac: u1 USD: "},
		{"missing key", intact, wrong, []string{"--all"}, exitLedgerFailed, "ledger: failed"},
		{"an unknown user", intact, right, []string{"u9", "--database"}, exitNotFound, ""},
		{"no user and no --all", intact, right, nil, exitUsage, ""},
		{"missing database", filepath.Join(intact, "none"), right, []string{"--all"}, exitFailed, ""},
		{"no server", intact, right, []string{"u1", "--listen-addr", "127.0.0.1:1"}, exitUnreachable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, reported := verifyIn(t, c.dir, c.key, c.args...)
			if code != c.code || !strings.Contains(out, c.reports) {
				t.Errorf("got exit code %d, want %d: %s%s", code, c.code, out, reported)
			}
		})
	}
}

func TestVerify_PrintsTheReportAsJSON(t *testing.T) {
	dir := ledgerDir(t, "")
	code, out, reported := verifyIn(t, dir, "k1:"+strings.Repeat("11", 32), "--all", "--json")
	var r audit.FullReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || !r.OK || len(r.Checks) != len(audit.Names()) {
		t.Errorf("verify --json: got exit code %d, error %v, want 0 and an ok report of all checks: %s%s", code, err, out, reported)
	}
	if !regexp.MustCompile(`^(verify: [0-9,]+ of [0-9,]+ rows\n)+$`).MatchString(reported) {
		t.Errorf("progress without a terminal: got %q, want lines with the verified rows", reported)
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets")); err == nil {
		t.Error("got a new secrets directory, want none")
	}
}
