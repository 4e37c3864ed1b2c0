package fee

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"assay/internal/db"
	"assay/internal/wallet"
)

// feeSets caches decoded sets of rules by the digest of their text. The digest identifies
// the content, so an entry is valid for every version with the same text, even if one of
// them was not committed.
type feeSets struct {
	mu   sync.Mutex
	sets map[string]*Set
}

// maxFeeSets is the maximum number of cached sets.
const maxFeeSets = 16

func (f *feeSets) get(digest string) *Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets[digest]
}

func (f *feeSets) put(digest string, set *Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sets) >= maxFeeSets || f.sets == nil {
		f.sets = map[string]*Set{} // the next reads fill the cache again
	}
	f.sets[digest] = set
}

// rowQuerier queries one row, in a transaction or with the read pool.
type rowQuerier func(query string, args ...any) interface{ Scan(into ...any) error }

// Queries for versions of the rules. Version 0 is the newest.
const (
	selectFeeVersion = `
		SELECT version, digest, source, mark, activated_at, activated_by, previous_mac, seal_version, key_id, mac FROM fee_rule_set
		WHERE $1 = 0 OR version = $1 ORDER BY version DESC LIMIT 1`
	selectFeeRules = `SELECT rules FROM fee_rule_set WHERE version = $1`
)

func (f *feeSets) activation(query rowQuerier, version int64) (Activation, error) {
	var a Activation
	var at int64
	var previous, mac []byte
	err := query(selectFeeVersion, version).Scan(&a.Version, &a.Digest, &a.Source, &a.Mark, &at, &a.By, &previous, &a.Seal.Version, &a.Seal.KeyID, &mac)
	if found, err := db.Found(err); !found {
		return a, cmp.Or(err, ErrNone)
	}
	a.At, a.Previous, a.Seal.MAC = db.Moment(at), wallet.StoredHash(previous), wallet.StoredHash(mac)
	set := f.get(a.Digest)
	if set == nil {
		var text string
		if err := query(selectFeeRules, a.Version).Scan(&text); err != nil {
			return a, err
		}
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != a.Digest {
			return a, fmt.Errorf("%w: the text of version %d of the fee rules does not match its digest: %w", wallet.ErrTampered, a.Version, wallet.RulesTampered(a.Version))
		}
		if set, err = Decode(strings.NewReader(text)); err != nil {
			return a, fmt.Errorf("version %d of the fee rules: %w", a.Version, errors.New(err.Error())) // not an error of the caller, so it must not be a fault
		}
		f.put(a.Digest, set)
	}
	own := *set
	own.Version = a.Version
	a.Set = &own
	return a, nil
}

// ReadActivation returns a version of the fee rules. Version 0 is the active one. The
// error is ErrNone if the version does not exist.
func ReadActivation(ctx context.Context, s *db.DB, version int64) (Activation, error) {
	return db.Local[feeSets](s).activation(func(query string, args ...any) interface{ Scan(into ...any) error } {
		return s.Reserved.QueryRowContext(ctx, query, args...)
	}, version)
}

// findActivation does the same as ReadActivation within a transaction.
func findActivation(t *db.Tx, version int64) (Activation, error) {
	return db.Local[feeSets](t.DB).activation(func(query string, args ...any) interface{ Scan(into ...any) error } {
		return t.QueryRow(query, args...)
	}, version)
}

// Active returns the active fee rules for a transaction that charges a fee. Another
// version may be activated before the transaction commits. The fee is then valid because
// the transaction started earlier. Active moves the transaction's time to the activation
// if that is later, because the clock of another instance may be ahead.
func Active(t *db.Tx) (Activation, error) {
	a, err := findActivation(t, 0)
	if err != nil {
		return a, fmt.Errorf("active fee rules: %w", err)
	}
	t.NotBefore(a.At)
	return a, nil
}

// feeLock is the number of a PostgreSQL advisory lock.
const feeLock = 0x61737361<<32 + 4

// holdRules prevents other activations until the transaction ends. It moves the
// transaction's time to the last activation and the last posting if they are later. That
// posting was charged by the previous rules.
func holdRules(t *db.Tx) error {
	if err := t.ExecPostgres(`SELECT pg_advisory_xact_lock($1)`, int64(feeLock)); err != nil {
		return err
	}
	var activated, posted int64
	err := t.QueryRow(`
		SELECT coalesce((SELECT activated_at FROM fee_rule_set ORDER BY version DESC LIMIT 1), 0),
			coalesce((SELECT at FROM wallet_transaction ORDER BY id DESC LIMIT 1), 0)`).Scan(&activated, &posted)
	t.NotBefore(db.Moment(activated))
	t.NotBefore(db.Moment(posted))
	return err
}

// addRules inserts a version of the fee rules. It is in force after the commit.
func addRules(t *db.Tx, a Activation) error {
	text, digest, err := a.Set.Canonical()
	if err != nil {
		return err
	}
	n, err := t.Exec(`
		INSERT INTO fee_rule_set (version, digest, rules, source, mark, activated_at, activated_by, previous_mac, seal_version, key_id, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, a.Version, digest, string(text), a.Source, a.Mark, db.Micros(a.At), a.By,
		a.Previous[:], a.Seal.Version, a.Seal.KeyID, a.Seal.MAC[:])
	if err == nil && n != 1 {
		err = wallet.NotWritten(fmt.Sprintf("version %d of the fee rules", a.Version))
	}
	return err
}

// ListActivations returns up to limit versions of the fee rules below before, newest first
// and without their sets. A before of 0 selects all versions.
func ListActivations(ctx context.Context, s *db.DB, before int64, limit int) ([]Activation, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, a *Activation) error {
		var at int64
		err := r.Scan(&a.Version, &a.Digest, &a.Source, &a.By, &at)
		a.At = db.Moment(at)
		return err
	}, `SELECT version, digest, source, activated_by, activated_at FROM fee_rule_set
		WHERE $1 = 0 OR version < $1 ORDER BY version DESC LIMIT $2`, before, limit)
}
