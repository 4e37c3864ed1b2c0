package config

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"assay/internal/diskfile"
)

// CreateSecrets creates the missing secrets for a first start on SQLite. Each new secret is
// a file with mode 0600 in DATA_DIR/secrets. CreateSecrets adds the secrets to c and returns
// the paths of the new files. It creates a key for the wallet ledger only if newLedgerKey is
// true, which means that the ledger has no sealed entry. Otherwise a missing key is an error.
// Without the module wallet a ledger without entries needs no key.
// On PostgreSQL every missing secret is an error, because all instances need the same
// secrets.
func CreateSecrets(c *Config, newLedgerKey bool) ([]string, error) {
	var missing Faults
	var created []string
	for _, s := range secretSettings() {
		if c.isSet(s.name) || s.name == ledgerKey && c.PricesOnly && newLedgerKey {
			continue
		}
		if c.Database.Engine != SQLite {
			missing = append(missing, Fault{
				Origin: originDefault, Setting: s.name,
				Problem: "is required on PostgreSQL; set it, or " + s.name + fileSuffix + ", to the same value on every instance",
			})
			continue
		}
		if s.name == ledgerKey && !newLedgerKey {
			missing = append(missing, Fault{
				Origin: generatedPath(c.DataDir, s.name), Setting: s.name,
				Problem: "is missing, and the ledger has entries sealed with it; restore it from a backup",
			})
			continue
		}
		path := generatedPath(c.DataDir, s.name)
		if err := createSecret(path); err != nil {
			return created, fmt.Errorf("create %s: %w", s.name, err)
		}
		created = append(created, path)
	}
	if err := missing.err(); err != nil {
		return created, err
	}
	if len(created) == 0 {
		return nil, nil
	}
	loaded, err := Load(c.options)
	if err != nil {
		return created, err
	}
	*c = *loaded
	return created, nil
}

// isSet reports whether a setting has a value.
func (c *Config) isSet(name string) bool {
	for _, s := range c.settings {
		if s.Name == name {
			return s.Value != ""
		}
	}
	return false
}

// createSecret writes 32 random bytes as hex to a new file.
func createSecret(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return errors.New("the file already exists")
	}
	f, err := diskfile.Create(filepath.Join(dir, "."+filepath.Base(path)+"-*"))
	if err != nil {
		return err
	}
	defer f.Discard()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	if _, err := f.WriteString(hex.EncodeToString(raw) + "\n"); err != nil {
		return err
	}
	return f.Commit(path)
}

// namedSecretSuffix is the suffix of secrets that a price list can use as ${NAME}.
const namedSecretSuffix = "_API_KEY"

// namedSecret reports whether a name has the form of an API key for an external service.
// Assay's own credentials have other names. A price list therefore cannot send them to
// another host.
func namedSecret(name string) bool {
	return settingName(name) && strings.HasSuffix(name, namedSecretSuffix) && name != namedSecretSuffix
}
