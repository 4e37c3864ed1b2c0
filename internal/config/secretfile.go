package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileSuffix ends the names of settings that name a file with the value of another.
const fileSuffix = "_FILE"

// secretsDir is where generated secrets lie within DATA_DIR.
const secretsDir = "secrets"

func generatedPath(dataDir, name string) string {
	return filepath.Join(dataDir, secretsDir, name)
}

// readSecretFile returns the content of a file without the line ends after it.
// Lines of a list become its parts. The problem reads on after the path.
func readSecretFile(path string, list bool) (value, problem string) {
	text, err := readBounded(path)
	if err != nil {
		return "", err.Error()
	}
	value = strings.TrimRight(string(text), "\r\n")
	if list {
		value = strings.ReplaceAll(strings.ReplaceAll(value, "\r\n", "\n"), "\n", ",")
	}
	if strings.TrimSpace(value) == "" {
		return "", "is empty; write the value into it"
	}
	return value, ""
}

// readGenerated returns a generated secret; found is false where none was
// created yet. A file without a line end was cut short: neither a shorter secret nor a
// new one in its place may come into force unnoticed.
func readGenerated(path string) (value string, found bool, problem string) {
	const remedy = "restore it from a backup, or delete it, and the next start creates a new one"
	text, err := readBounded(path)
	if err != nil {
		if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
			return "", false, ""
		}
		return "", true, err.Error()
	}
	switch {
	case len(text) == 0:
		return "", true, "is empty; " + remedy
	case text[len(text)-1] != '\n':
		return "", true, "does not end with a line end, so it may be cut short; " + remedy
	}
	value, problem = readSecretFile(path, true)
	return value, true, problem
}

// warnIfOpen warns if every user of the machine can read a file of secrets.
func (l *loader) warnIfOpen(path string) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o007 != 0 {
		l.warnings = append(l.warnings,
			fmt.Sprintf("%s can be read by every user of this machine; chmod 600 it", path))
	}
}

// leastSecret is the fewest characters of a secret that gives a role.
const leastSecret = 16

// refuseWeakSecrets faults secrets that are easily guessed, and those with which one role
// could act as another one or forge the wallet ledger.
func (l *loader) refuseWeakSecrets(c *Config) {
	seen := map[string]string{}
	for _, role := range rolesOf(c) {
		for _, s := range role.live {
			text := s.Reveal()
			if len(text) < leastSecret {
				l.fault(role.setting, l.origins[role.setting], fmt.Sprintf(
					"holds a secret of fewer than %d characters; use a longer one, such as the output of `openssl rand -hex 32`", leastSecret))
			}
			if other := seen[text]; other != "" && other != role.setting {
				l.fault(role.setting, l.origins[role.setting], "shares a secret with "+other+
					", so that one role could act as the other; give each its own")
			}
			seen[text] = role.setting
			// The key may be written as id:hex, or with capital letters.
			if slices.ContainsFunc(c.LedgerKeys, func(k LedgerKey) bool { return strings.Contains(strings.ToLower(text), k.Key.Reveal()) }) {
				l.fault(role.setting, l.origins[role.setting],
					"shares a secret with WALLET_LEDGER_KEY, so that a caller could forge the ledger's seals; generate another one, such as with `openssl rand -hex 32`")
			}
		}
	}
}
