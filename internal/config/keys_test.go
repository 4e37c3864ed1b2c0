package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestCreateSecrets_FirstStartOnSQLite(t *testing.T) {
	c := load(t, options(t))
	created, err := CreateSecrets(c, true)
	if err != nil || len(created) != 4 {
		t.Fatalf("got files %v, %v; want 4", created, err)
	}
	if info, err := os.Stat(filepath.Join(c.DataDir, "secrets")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: got mode %v, %v; want 0700", info.Mode(), err)
	}
	form := regexp.MustCompile(`^[0-9a-f]{64}\n$`)
	seen := map[string]bool{}
	for _, path := range created {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v; want 0600", path, info.Mode(), err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !form.Match(text) || seen[string(text)] {
			t.Errorf("%s: got an invalid or repeated secret, error %v, want a new secret", path, err)
		}
		seen[string(text)] = true
	}
	if len(c.SyncSecrets) != 1 || len(c.PlatformTokens) != 1 || len(c.AdminTokens) != 1 || len(c.LedgerKeys) != 1 {
		t.Error("got a configuration without the new secrets, want one for each role and a ledger key")
	}
	before := c.AdminTokens[0].Reveal()
	again := load(t, c.options)
	if created, err := CreateSecrets(again, true); err != nil || created != nil || again.AdminTokens[0].Reveal() != before {
		t.Errorf("second start: got new files %v, %v; want none", created, err)
	}
	for _, s := range again.Effective() {
		if s.Name == "ADMIN_API_TOKEN" && (!strings.HasPrefix(s.Origin, "generated ") || s.Value != redacted) {
			t.Errorf("got setting %+v, want a redacted, generated secret", s)
		}
	}
	left, err := os.ReadDir(filepath.Join(c.DataDir, "secrets"))
	if err != nil || len(left) != 4 {
		t.Errorf("got %d files, %v; want 4", len(left), err)
	}
}

func TestCreateSecrets_KeepsExistingSecrets(t *testing.T) {
	c := load(t, options(t, "ADMIN_API_TOKEN=set-by-the-operator"))
	created, err := CreateSecrets(c, true)
	if err != nil || len(created) != 3 || c.AdminTokens[0].Reveal() != "set-by-the-operator" {
		t.Errorf("got files %v, %v; want 3 and the token of the operator", created, err)
	}
}

func TestCreateSecrets_KeepsADamagedFile(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "is empty; restore it"},
		"cut":   {"0123456789abcdef", "does not end with a line end and may be truncated; restore it"},
		"blank": {"\n", "is empty; write the value into it"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			dir := strings.TrimPrefix(o.Environ[0], "DATA_DIR=")
			path := write(t, filepath.Join(dir, "secrets", "ADMIN_API_TOKEN"), c.text)
			_, err := Load(o)
			if err == nil || !strings.Contains(err.Error(), path+": ADMIN_API_TOKEN: "+c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != c.text {
				t.Errorf("got content %q, %v; want %q", text, err, c.text)
			}
		})
	}
}

func TestCreateSecrets_RefusesADanglingLink(t *testing.T) {
	o := options(t)
	dir := filepath.Join(strings.TrimPrefix(o.Environ[0], "DATA_DIR="), "secrets")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(dir, "ADMIN_API_TOKEN")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got error %v, want one with %q", err, "does not exist")
	}
}

func TestCreateSecrets_PostgresRequiresThem(t *testing.T) {
	c := load(t, options(t, "DATABASE_URL=postgres://db/prices", "ADMIN_API_TOKEN=set-by-the-operator"))
	created, err := CreateSecrets(c, true)
	if len(created) != 0 || err == nil || strings.Count(err.Error(), "is required on PostgreSQL; set it, or") != 3 {
		t.Errorf("got files %v, error %v; want none and 3 faults", created, err)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "secrets")); err == nil {
		t.Error("got a new directory for secrets, want none")
	}
}

func TestCreateSecrets_LedgerKeyOnlyForAnEmptyLedger(t *testing.T) {
	c := load(t, options(t))
	created, err := CreateSecrets(c, false)
	if err == nil || !strings.Contains(err.Error(), "WALLET_LEDGER_KEY: is missing, and the ledger has entries") {
		t.Errorf("got files %v, error %v; want an error about WALLET_LEDGER_KEY", created, err)
	}
}

func TestLoad_RefusesWeakAndSharedSecrets(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "token"), "fifteen-letters\n")
	_, err := Load(options(t, "ADMIN_API_TOKEN_FILE="+path, "PLATFORM_API_TOKEN=the-same-secret-twice", "MARKET_PRICE_SYNC_SECRET=another-secret-here,the-same-secret-twice"))
	if err == nil {
		t.Fatal("got no error, want two faults")
	}
	for _, want := range []string{
		"ADMIN_API_TOKEN: contains a secret with fewer than 16 characters",
		"PLATFORM_API_TOKEN: shares a secret with MARKET_PRICE_SYNC_SECRET",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error\n%v\nwant %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "fifteen-letters") || strings.Contains(err.Error(), "the-same-secret-twice") {
		t.Errorf("got error %v, want one without a secret", err)
	}
}

// A token must not contain the ledger key: a client with such a token could forge ledger entries.
func TestLoad_RefusesATokenAsLedgerKey(t *testing.T) {
	first, second := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	for _, token := range []string{first, second, strings.ToUpper(second), "k2:" + second} {
		_, err := Load(options(t, "WALLET_LEDGER_KEY=k1:"+first+",k2:"+second, "ADMIN_API_TOKEN=an-unrelated-secret,"+token))
		const want = "ADMIN_API_TOKEN: contains WALLET_LEDGER_KEY"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("token %s: got error %v, want %q in it", token, err, want)
		} else if strings.Contains(strings.ToLower(err.Error()), first) || strings.Contains(strings.ToLower(err.Error()), second) {
			t.Errorf("got error %v, want one without a key", err)
		}
	}
}

func TestLoad_WarnsOfReadableSecretFiles(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "token"), "a-secret-for-everybody\n")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	c := load(t, options(t, "ADMIN_API_TOKEN_FILE="+path))
	if all := strings.Join(c.Warnings, "\n"); !strings.Contains(all, path+" can be read by every user") {
		t.Errorf("got warnings\n%s\nwant one about %s", all, path)
	}
}
