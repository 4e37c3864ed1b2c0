package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"
)

// A schema is identified by the number of its last migration and by a fingerprint. The
// fingerprint is a hash of all migrations up to that number. The last statement of each
// migration stores it, in the same transaction. It differs if another build applied
// different migrations with the same number. A database without a fingerprint was created
// before fingerprints existed.

// fingerprintSetting is the name of the setting that holds the fingerprint.
const fingerprintSetting = "schema_fingerprint"

// ErrSchemaNewer means that a newer version of the program created the schema.
var ErrSchemaNewer = errors.New("the schema of the database is too new")

// ErrSchemaUnknown means that another build created the schema.
var ErrSchemaUnknown = errors.New("another build of assay created the database with a different schema")

// readMigrations returns the migrations of a dialect, each with a statement that stores
// its fingerprint. It also returns the fingerprints by version.
func readMigrations(d Dialect) (fs.FS, map[int64]string, error) {
	names, err := fs.Glob(migrations, d.migrations()+"/*.sql")
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	files, prints := fstest.MapFS{}, map[int64]string{}
	hash := sha256.New()
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, nil, err
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		hash.Write(normalizeSQL(text))
		prints[version] = hex.EncodeToString(hash.Sum(nil)[:8])
		text = fmt.Appendf(text, "\nINSERT INTO setting (name, value) VALUES ('%s', '%s')\nON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
			fingerprintSetting, prints[version])
		files[strings.TrimPrefix(name, d.migrations()+"/")] = &fstest.MapFile{Data: text}
	}
	return files, prints, nil
}

// normalizeSQL removes comments and extra white space, so that comments can be edited
// without changing the fingerprint.
func normalizeSQL(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		code, _, _ := bytes.Cut(line, []byte("--"))
		for word := range bytes.FieldsSeq(code) {
			out.Write(word)
			out.WriteByte(' ')
		}
	}
	return out.Bytes()
}

// checkSchema checks the fingerprint of a database. If the schema has the newest version,
// it also compares the tables. It returns version 0 for an empty database.
func checkSchema(ctx context.Context, d Dialect, q Querier) (version int64, upToDate bool, err error) {
	version, upToDate, err = checkVersion(ctx, d, q)
	if err == nil && upToDate {
		err = checkCatalog(ctx, d, q)
	}
	return version, upToDate, err
}

// checkVersion checks the fingerprint of a database but does not compare its tables.
// Backups and ledger verifications use it, because they must work on changed tables too.
func checkVersion(ctx context.Context, d Dialect, q Querier) (version int64, upToDate bool, err error) {
	version, err = schemaVersion(ctx, q)
	if err != nil {
		return version, false, err
	}
	if version == 0 {
		if exist, err := tablesExist(ctx, q); err != nil || !exist {
			return 0, false, err
		}
		// Another process may have migrated the database after the first query.
		if version, err = schemaVersion(ctx, q); err != nil {
			return 0, false, err
		}
		if version == 0 {
			return 0, false, fmt.Errorf("%w: the database has tables, but goose_db_version is empty or missing. The database was left unchanged. "+
				"Restore a backup, or use an empty database", ErrSchemaChanged)
		}
	}
	if newest := newestMigration(d); version > newest {
		return version, false, fmt.Errorf("%w: it has schema version %d, and this program supports up to %d. The database was left unchanged. "+
			"Use the newer version of assay that created it, or restore a backup of this version", ErrSchemaNewer, version, newest)
	}
	have, err := First(Collect(ctx, q, func(r *sql.Rows, v *string) error { return r.Scan(v) },
		`SELECT value FROM setting WHERE name = $1`, fingerprintSetting))
	if err != nil {
		return version, false, err
	}
	_, prints, err := readMigrations(d)
	if err != nil {
		return version, false, err
	}
	if have == nil {
		have = new(string)
		*have = "none (created before fingerprints existed)"
	}
	if *have != prints[version] {
		return version, false, fmt.Errorf("%w: schema version %d has fingerprint %s, this build has %s. The database was left unchanged. "+
			"Start the build that created it, restore a backup made by this build, or use an empty database", ErrSchemaUnknown, version, *have, prints[version])
	}
	return version, version == newestMigration(d), nil
}

// tablesExist reports whether a database has the tables of this program. The first
// migration creates them and its version in one transaction.
func tablesExist(ctx context.Context, q Querier) (bool, error) {
	_, err := Collect(ctx, q, func(r *sql.Rows, v *int) error { return r.Scan(v) }, `SELECT 1 FROM setting LIMIT 1`)
	if pgCode(err) == pgUndefinedTable || isNoTable(err) {
		return false, nil
	}
	return err == nil, err
}

// schemaVersion returns the number of the last migration, or 0 if none was applied.
func schemaVersion(ctx context.Context, q Querier) (int64, error) {
	v, err := First(Collect(ctx, q, func(r *sql.Rows, v *sql.NullInt64) error { return r.Scan(v) },
		`SELECT max(version_id) FROM goose_db_version WHERE is_applied`))
	if pgCode(err) == pgUndefinedTable || isNoTable(err) {
		return 0, nil
	}
	if err != nil || v == nil {
		return 0, err
	}
	return v.Int64, nil
}

// isNoTable reports whether err means that an SQLite table does not exist.
func isNoTable(err error) bool {
	const sqliteError = 1
	return sqliteCode(err)&0xff == sqliteError && strings.Contains(err.Error(), "no such table")
}
