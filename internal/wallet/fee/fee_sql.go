package fee

import (
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

// feeSets keeps sets of rules that were read, by the digest of their text: what
// has a digest never changes, whichever version it is and whether that was
// committed.
type feeSets struct {
	mu   sync.Mutex
	sets map[string]*Set
}

// maxFeeSets bounds how many are kept.
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
		f.sets = map[string]*Set{} // those in use come back at once
	}
	f.sets[digest] = set
}

// rowQuerier is what reads of one row need: a transaction or the readers' pool.
type rowQuerier func(query string, args ...any) interface{ Scan(into ...any) error }

// The versions of the rules; 0 is the newest.
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
	if errors.Is(err, sql.ErrNoRows) {
		return a, ErrNone
	}
	if err != nil {
		return a, err
	}
	a.At, a.Previous, a.Seal.MAC = db.Moment(at), wallet.StoredHash(previous), wallet.StoredHash(mac)
	set := f.get(a.Digest)
	if set == nil {
		var text string
		if err := query(selectFeeRules, a.Version).Scan(&text); err != nil {
			return a, err
		}
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != a.Digest {
			return a, fmt.Errorf("%w: version %d of the fee rules has another text: %w", wallet.ErrTampered, a.Version, wallet.RulesTampered(a.Version))
		}
		if set, err = Decode(strings.NewReader(text)); err != nil {
			return a, fmt.Errorf("version %d of the fee rules: %w", a.Version, errors.New(err.Error())) // no fault of the caller
		}
		f.put(a.Digest, set)
	}
	own := *set
	own.Version = a.Version
	a.Set = &own
	return a, nil
}

// ReadActivation returns a version of the fee rules, 0: the active one; the error
// is fee.ErrNone if there is none.
func ReadActivation(ctx context.Context, s *db.DB, version int64) (Activation, error) {
	return db.Local[feeSets](s).activation(func(query string, args ...any) interface{ Scan(into ...any) error } {
		return s.Reserved.QueryRowContext(ctx, query, args...)
	}, version)
}

// findActivation is ReadActivation, as a transaction sees it.
func findActivation(t *db.Tx, version int64) (Activation, error) {
	return db.Local[feeSets](t.DB).activation(func(query string, args ...any) interface{ Scan(into ...any) error } {
		return t.QueryRow(query, args...)
	}, version)
}

// Active returns the fee rules in force, for this transaction to charge by and
// to note the version of. Another version may be activated before it is committed:
// then it was made just before. From here on the transaction's moment is not before
// the activation, also where the clock of the instance that activated them is ahead.
func Active(t *db.Tx) (Activation, error) {
	a, err := findActivation(t, 0)
	if err != nil {
		return a, fmt.Errorf("active fee rules: %w", err)
	}
	t.NotBefore(a.At)
	return a, nil
}

// feeLock is the number of an advisory lock.
const feeLock = 0x61737361<<32 + 4

// holdRules keeps others from activating fee rules until the transaction ends. From here
// on its moment is not before the last activation and the last posting, which was
// charged by the rules until now.
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

// addRules adds a version of the fee rules, which is in force from the commit on.
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

// ListActivations returns versions of the fee rules below before (0: all), the
// newest first, without their sets.
func ListActivations(ctx context.Context, s *db.DB, before int64, limit int) ([]Activation, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, a *Activation) error {
		var at int64
		err := r.Scan(&a.Version, &a.Digest, &a.Source, &a.By, &at)
		a.At = db.Moment(at)
		return err
	}, `SELECT version, digest, source, activated_by, activated_at FROM fee_rule_set
		WHERE $1 = 0 OR version < $1 ORDER BY version DESC LIMIT $2`, before, limit)
}
