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

// fileSuffix is the suffix of settings that name a file. The file contains the value of the
// setting without the suffix.
const fileSuffix = "_FILE"

// secretsDir is the directory of generated secrets within DATA_DIR.
const secretsDir = "secrets"

func generatedPath(dataDir, name string) string {
	return filepath.Join(dataDir, secretsDir, name)
}

// readSecretFile returns the content of a file without trailing line ends. If list is true,
// it joins the lines with commas. The problem continues a sentence that begins with the path.
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

// readGenerated returns a generated secret. The result found is false if the file does not
// exist. A file without a trailing line end is a problem, because it may be truncated. The
// operator must decide whether to restore or replace it.
func readGenerated(path string) (value string, found bool, problem string) {
	const remedy = "restore it from a backup, or delete it to create a new secret at the next start"
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
		return "", true, "does not end with a line end and may be truncated; " + remedy
	}
	value, problem = readSecretFile(path, true)
	return value, true, problem
}

// warnIfOpen warns if every user of the machine can read a file with secrets.
func (l *loader) warnIfOpen(path string) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o007 != 0 {
		l.warnings = append(l.warnings,
			fmt.Sprintf("%s can be read by every user of this machine; change its mode to 600", path))
	}
}

// leastSecret is the minimum length of a secret that grants a role, in characters.
const leastSecret = 16

// refuseWeakSecrets reports secrets that are too short, secrets that two roles share, and
// secrets that contain a key of the wallet ledger.
func (l *loader) refuseWeakSecrets(c *Config) {
	seen := map[string]string{}
	for _, role := range rolesOf(c) {
		for _, s := range role.secrets {
			text := s.Reveal()
			if len(text) < leastSecret {
				l.fault(role.setting, l.origins[role.setting], fmt.Sprintf(
					"contains a secret with fewer than %d characters; use a longer secret, such as the output of `openssl rand -hex 32`", leastSecret))
			}
			if other := seen[text]; other != "" && other != role.setting {
				l.fault(role.setting, l.origins[role.setting], "shares a secret with "+other+
					", so that one role could act as the other; use a different secret for each")
			}
			seen[text] = role.setting
			// The secret can contain the key as id:hex or in upper case.
			if slices.ContainsFunc(c.LedgerKeys, func(k LedgerKey) bool { return strings.Contains(strings.ToLower(text), k.Key.Reveal()) }) {
				l.fault(role.setting, l.origins[role.setting],
					"contains WALLET_LEDGER_KEY, so that a caller could forge ledger entries; generate another secret, such as with `openssl rand -hex 32`")
			}
		}
	}
}
