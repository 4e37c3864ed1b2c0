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

// A schema is known by the number of its last migration and by a fingerprint of the
// texts of all migrations up to that one. The last statement of each migration
// stores it, in the migration's own transaction. A database that a build with
// another text of the same number has made is so recognised, and one without a
// fingerprint is older than they are.

// fingerprintSetting is the setting that holds the fingerprint.
const fingerprintSetting = "schema_fingerprint"

// ErrSchemaUnknown means that a database has a schema that this program does not
// know.
var ErrSchemaUnknown = errors.New("the database was made by another build of assay, whose schema differs")

// readMigrations returns the migrations of a database with the statement that
// stores the fingerprint, and the fingerprints by version.
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
		hash.Write(essence(text))
		prints[version] = hex.EncodeToString(hash.Sum(nil)[:8])
		text = fmt.Appendf(text, "\nINSERT INTO setting (name, value) VALUES ('%s', '%s')\nON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
			fingerprintSetting, prints[version])
		files[strings.TrimPrefix(name, d.migrations()+"/")] = &fstest.MapFile{Data: text}
	}
	return files, prints, nil
}

// essence is a migration's text without comments and with single blanks, so that a
// comment may be corrected.
func essence(text []byte) []byte {
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

// checkSchema compares a database's schema with those that this program knows, and its
// tables with the newest one if it is that. It reports whether it is; version 0 is an
// empty database.
func checkSchema(ctx context.Context, d Dialect, q Querier) (version int64, upToDate bool, err error) {
	version, upToDate, err = knownSchema(ctx, d, q)
	if err == nil && upToDate {
		err = checkCatalogue(ctx, d, q)
	}
	return version, upToDate, err
}

// knownSchema is checkSchema for what also reads tables that were changed.
func knownSchema(ctx context.Context, d Dialect, q Querier) (version int64, upToDate bool, err error) {
	version, err = schemaVersion(ctx, q)
	if err != nil {
		return version, false, err
	}
	if version == 0 {
		return 0, false, checkEmpty(ctx, q)
	}
	if newest := newestMigration(d); version > newest {
		return version, false, fmt.Errorf("the database has schema version %d, this program knows %d: use the newer version of assay that wrote it", version, newest)
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
		*have = "none, it is from before there were any"
	}
	if *have != prints[version] {
		return version, false, fmt.Errorf("%w: its schema version is %d with fingerprint %s, this build's has %s. Nothing was changed. "+
			"Start the build that made it, restore a backup made by this build, or begin with an empty database", ErrSchemaUnknown, version, *have, prints[version])
	}
	return version, version == newestMigration(d), nil
}

// checkEmpty refuses a database that has our tables and no version of them.
func checkEmpty(ctx context.Context, q Querier) error {
	_, err := Collect(ctx, q, func(r *sql.Rows, v *int) error { return r.Scan(v) }, `SELECT 1 FROM setting LIMIT 1`)
	if pgCode(err) == pgUndefinedTable || isNoTable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: it has tables, and goose_db_version has no version of the schema or is missing. Nothing was changed now. "+
		"Restore a backup, or begin with an empty database", ErrSchemaChanged)
}

// schemaVersion returns the number of the last migration; 0: there was none.
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

// isNoTable reports whether SQLite does not know a table.
func isNoTable(err error) bool {
	const sqliteError = 1
	return sqliteCode(err)&0xff == sqliteError && strings.Contains(err.Error(), "no such table")
}
