package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

var (
	errSecretEmpty = errors.New("has an empty part; remove the extra comma")
	errSecretForm  = errors.New("contains a character that is not allowed in a header; use printable ASCII without spaces")
	errSecretName  = errors.New("is not the name of an API key for an external service; it must end in " + namedSecretSuffix)
	errSecretTwice = errors.New("contains the same secret twice; remove one")
	errLedgerKey   = errors.New("is not a ledger key; use 64 hex digits, or a list of id:hex with 64 hex digits each")
	errLedgerID    = errors.New("has an invalid id; use 1 to 32 lower-case letters, digits, - or _")
	errLedgerTwice = errors.New("has two keys with the same id; use a different id for each key")
	errDatabase    = errors.New("is not a database URL; use sqlite:PATH or postgres://user@host/name")
	errDirect      = errors.New("is not the address of a PostgreSQL database; write postgres://user@host/name")
	errDirectAlone = errors.New("requires PostgreSQL, but DATABASE_URL names an SQLite file; remove it")
	errMemory      = errors.New("names a database in memory, which loses all data when the server stops; write sqlite:PATH")
)

// bareLedgerID is the id of a key that is configured without an id.
const bareLedgerID = "k1"

func parseSecrets(value string) ([]Secret, error) {
	var list []Secret
	for _, part := range splitList(value) {
		if err := checkSecret(part); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(s Secret) bool { return s.Reveal() == part }) {
			return nil, errSecretTwice
		}
		list = append(list, NewSecret(part))
	}
	return list, nil
}

// checkSecret returns an error if a client cannot send the secret in a header.
func checkSecret(part string) error {
	if part == "" {
		return errSecretEmpty
	}
	for i := range len(part) {
		if part[i] <= ' ' || part[i] > '~' {
			return errSecretForm
		}
	}
	return nil
}

func parseSecret(value string) (Secret, error) { return NewSecret(value), checkSecret(value) }

func parseLedgerKeys(value string) (keys []LedgerKey, err error) {
	for _, part := range splitList(value) {
		id, digits, named := strings.Cut(part, ":")
		if !named {
			id, digits = bareLedgerID, part
		}
		if raw, err := hex.DecodeString(digits); err != nil || len(raw) != 32 {
			return nil, errLedgerKey
		}
		if !ledgerID(id) {
			return nil, errLedgerID
		}
		if slices.ContainsFunc(keys, func(k LedgerKey) bool { return k.ID == id }) {
			return nil, errLedgerTwice
		}
		keys = append(keys, LedgerKey{ID: id, Key: NewSecret(strings.ToLower(digits))})
	}
	return keys, nil
}

func ledgerID(id string) bool {
	if id == "" || len(id) > 32 {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

func setDatabase(c *Config, value string) (err error) {
	c.Database, err = ParseDatabase(strings.ReplaceAll(value, "{DATA_DIR}", c.DataDir))
	return err
}

// ParseDatabase parses the location of a database in the form of DATABASE_URL, which is
// sqlite:PATH or postgres://... The error does not contain the value, which may include a
// password.
func ParseDatabase(value string) (Database, error) {
	if path, ok := strings.CutPrefix(value, "sqlite:"); ok {
		if path == "" {
			return Database{}, errDatabase
		}
		if strings.Contains(path, ":memory:") || strings.Contains(path, "mode=memory") {
			return Database{}, errMemory
		}
		return Database{Engine: SQLite, Path: path}, nil
	}
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") || u.Host == "" && u.RawQuery == "" {
		return Database{}, errDatabase
	}
	return Database{Engine: Postgres, URL: NewSecret(value)}, nil
}

// String returns the location of the database. It omits the password and the query, which
// may contain a password.
func (d Database) String() string {
	if d.Engine == SQLite {
		return "sqlite:" + d.Path
	}
	u, err := url.Parse(d.URL.Reveal())
	if err != nil {
		return redacted
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		shown.User = url.User(u.User.Username())
	}
	return shown.String()
}

// setDirect sets Database.Direct. It must run after setDatabase.
func setDirect(c *Config, value string) error {
	direct, err := ParseDatabase(value)
	if err != nil || direct.Engine != Postgres {
		return errDirect
	}
	if c.Database.Engine == SQLite {
		return errDirectAlone
	}
	c.Database.Direct = direct.URL
	return nil
}

func showDirect(c *Config, _ string) string {
	return Database{Engine: Postgres, URL: c.Database.Direct}.String()
}

func showDatabase(c *Config, _ string) string { return c.Database.String() }

// showSecrets returns a placeholder with the number of secrets.
func showSecrets(_ *Config, value string) string {
	switch n := len(splitList(value)); {
	case value == "":
		return ""
	case n == 1:
		return redacted
	default:
		return fmt.Sprintf("%s (%d)", redacted, n)
	}
}
