package audit

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"sync"

	"assay/internal/db"
	"assay/internal/wallet"
)

// guardedTables are the tables of the ledger and the tables that map money to users.
const guardedTables = `('wallet_account', 'wallet_entry', 'wallet_transaction', 'wallet_key', 'wallet_audit', 'trade', 'fee_rule_set',
	'listing', 'platform_user', 'idempotent_response')`

// Schema compares the guarded tables with the migrations. This includes all objects that
// affect which rows a statement reads or writes. compared is the number of objects. Row
// security cannot hide the catalog rows that Schema reads.
func (l *Snapshot) Schema() (compared int, changes []SchemaChange, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, err := db.Local[guardModel](l.db).objects(l.ctx, l.d)
	if err != nil {
		return 0, nil, err
	}
	query := selectObjectsSQLite
	if l.d == db.PostgreSQL {
		query = selectObjectsPostgres
	}
	have, err := db.ReadObjects(l.ctx, l.tx, query)
	if err != nil {
		return 0, nil, err
	}
	if l.loosened {
		have = want
	}
	names := maps.Clone(want)
	maps.Copy(names, have)
	for _, c := range want.Compare(have) {
		changes = append(changes, SchemaChange(c))
	}
	return len(names), changes, nil
}

// guardModel caches the guarded objects that the migrations create.
type guardModel struct {
	mu   sync.Mutex
	made db.Objects
}

func (m *guardModel) objects(ctx context.Context, d db.Dialect) (_ db.Objects, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		if d == db.PostgreSQL {
			m.made, err = db.ParseObjects(postgresObjects)
		} else {
			m.made, err = objectsOfModel(ctx)
		}
	}
	return m.made, err
}

// objectsOfModel migrates an empty database in memory. SQLite stores the statement that
// created an object, so the statements can be compared.
func objectsOfModel(ctx context.Context) (_ db.Objects, err error) {
	model, err := db.ModelSQLite(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	return db.ReadObjects(ctx, model, selectObjectsSQLite)
}

// selectObjectsSQLite selects all objects except plain indexes, which an operator may add.
const selectObjectsSQLite = `
SELECT type || ' ' || name || ' on ' || lower(tbl_name), coalesce(sql, 'implicit') FROM sqlite_schema
WHERE (lower(tbl_name) IN ` + guardedTables + ` OR lower(name) IN ` + guardedTables + `)
	AND NOT (type = 'index' AND upper(coalesce(sql, '')) LIKE 'CREATE INDEX %')`

// postgresObjects is the result of selectObjectsPostgres in a new database. PostgreSQL
// does not store the original statements, and a verification has no empty database to
// compare with. A test generates the file.
//
//go:embed guard_postgres.txt
var postgresObjects string

// selectObjectsPostgres selects everything that affects which rows of the guarded tables a
// statement reads or writes: kind, row security, owner, columns, constraints, unique and
// expression indexes, triggers with their functions, rules, policies and inheritance. It
// also selects other tables with the same names. The output is equal in all supported
// versions of PostgreSQL.
const selectObjectsPostgres = `
WITH ours AS (
	SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, c.relowner,
		(SELECT v.relowner FROM pg_class v WHERE v.oid = to_regclass('goose_db_version')) AS owner
	FROM pg_class c WHERE c.relname IN ` + guardedTables + ` AND c.oid = to_regclass(quote_ident(c.relname))
)
SELECT 'table ' || relname, concat_ws(', ', CASE relkind WHEN 'r' THEN 'ordinary' ELSE 'of kind ' || relkind::text END,
	CASE WHEN relpersistence <> 'p' THEN 'not permanent' END, CASE WHEN relrowsecurity THEN 'row security enabled' END,
	CASE WHEN relforcerowsecurity THEN 'row security forced' END,
	CASE WHEN relowner IS DISTINCT FROM owner THEN 'owned by ' || pg_get_userbyid(relowner) END) FROM ours
UNION ALL
SELECT 'column ' || attname || ' of ' || relname, concat_ws(' ', format_type(atttypid, atttypmod),
	CASE WHEN attcollation <> 0 AND collname <> 'default' THEN 'COLLATE ' || collname END, CASE WHEN attnotnull THEN 'NOT NULL' END,
	'DEFAULT ' || pg_get_expr(adbin, adrelid), CASE WHEN attidentity <> '' THEN 'IDENTITY ' || attidentity::text END,
	CASE WHEN attgenerated <> '' THEN 'GENERATED ' || attgenerated::text END)
FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum LEFT JOIN pg_collation l ON l.oid = attcollation
WHERE relname NOT IN ('listing', 'platform_user', 'idempotent_response')
UNION ALL
SELECT 'constraint ' || conname || ' on ' || relname, pg_get_constraintdef(k.oid)
FROM ours JOIN pg_constraint k ON k.conrelid = ours.oid AND contype IN ('p', 'u', 'x', 'c', 'f')
UNION ALL
SELECT 'index ' || i.relname || ' on ' || ours.relname, concat_ws(', ', pg_get_indexdef(indexrelid, 0, true),
	CASE WHEN NOT indisvalid OR NOT indisready OR NOT indislive THEN 'not valid' END, CASE WHEN NOT indimmediate THEN 'deferred' END)
FROM ours JOIN pg_index x ON indrelid = ours.oid JOIN pg_class i ON i.oid = indexrelid
WHERE indisunique OR EXISTS (
	SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = indexrelid
		AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass))
UNION ALL
SELECT 'trigger ' || tgname || ' on ' || relname, concat_ws(' ', CASE tgenabled WHEN 'A' THEN 'always' ELSE 'when ' || tgenabled::text END,
	CASE WHEN tgtype & 64 <> 0 THEN 'INSTEAD OF' WHEN tgtype & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END,
	concat_ws(' OR ', CASE WHEN tgtype & 4 <> 0 THEN 'INSERT' END, CASE WHEN tgtype & 16 <> 0 THEN 'UPDATE' END,
		CASE WHEN tgtype & 8 <> 0 THEN 'DELETE' END, CASE WHEN tgtype & 32 <> 0 THEN 'TRUNCATE' END),
	CASE WHEN tgattr <> '' THEN 'of some columns' END, CASE WHEN tgtype & 1 <> 0 THEN 'for each row' ELSE 'for each statement' END,
	CASE WHEN tgqual IS NOT NULL THEN 'on a condition' END, CASE WHEN tgnargs <> 0 THEN 'with arguments' END,
	CASE WHEN prosecdef THEN 'with the rights of its owner' END, CASE WHEN proowner IS DISTINCT FROM owner THEN 'owned by ' || pg_get_userbyid(proowner) END,
	array_to_string(proconfig, ' '), lanname, proname, prosrc)
FROM ours JOIN pg_trigger t ON tgrelid = ours.oid AND NOT tgisinternal JOIN pg_proc p ON p.oid = tgfoid JOIN pg_language l ON l.oid = prolang
UNION ALL
SELECT 'rule ' || rulename || ' on ' || relname, 'enabled ' || ev_enabled::text FROM ours JOIN pg_rewrite ON ev_class = ours.oid
UNION ALL
SELECT 'policy ' || polname || ' on ' || relname, 'for ' || polcmd::text FROM ours JOIN pg_policy ON polrelid = ours.oid
UNION ALL
SELECT 'inheritance of ' || relname, inhrelid::regclass::text || ' inherits ' || inhparent::regclass::text
FROM ours JOIN pg_inherits ON ours.oid IN (inhrelid, inhparent)
UNION ALL
SELECT 'relation ' || nspname || '.' || relname, 'with the name of a ledger table'
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relname IN ` + guardedTables + ` AND c.oid IS DISTINCT FROM to_regclass(quote_ident(relname))
	AND (nspname = ANY (current_schemas(false)) OR nspname LIKE 'pg\_temp\_%')
UNION ALL
SELECT 'search path', array_to_string(path, ', ') FROM (SELECT current_schemas(true) AS path) s
WHERE path[1] <> 'pg_catalog' AND NOT (path[1] LIKE 'pg\_temp\_%' AND path[2] = 'pg_catalog')`

// rowSecurityOffOnPostgres makes a statement fail instead of hiding rows by row security.
const rowSecurityOffOnPostgres = `SELECT set_config('row_security', 'off', true)`

// Keys returns the stored marks of keys, at most 1000.
func (l *Snapshot) Keys() ([]wallet.KeyMark, error) {
	return readCells(l, "k.key_id, k.check_mac", func(c *cells) wallet.KeyMark { return wallet.KeyMark{ID: c.text(), Check: c.hash()} },
		`SELECT k.key_id, k.check_mac FROM wallet_key k ORDER BY k.key_id LIMIT 1000`)
}
