package db

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The fingerprint shows which build created a schema, but not whether it changed later.
// Therefore a start also compares each table. A column or key that was changed by hand
// would cause errors in a running server. Tables and plain indexes that an operator adds
// are ignored. The ledger verification checks triggers, policies and owners.

// ErrSchemaChanged means that a table differs from the migrations.
var ErrSchemaChanged = errors.New("the schema was changed by hand")

// shownChanges is the maximum number of changes that an error lists.
const shownChanges = 5

// checkCatalog returns ErrSchemaChanged if a table differs from the migrations. The
// database must have the newest schema version.
func checkCatalog(ctx context.Context, d Dialect, q Querier) error {
	want, query, err := expectedCatalog(ctx, d)
	if err != nil {
		return err
	}
	have, err := ReadObjects(ctx, q, query, strings.Join(want.tables(), ","))
	if err != nil {
		return fmt.Errorf("compare the schema: %w", err)
	}
	changes := want.withPartitions(have).Compare(have)
	if len(changes) == 0 {
		return nil
	}
	var details []string
	for _, c := range changes[:min(len(changes), shownChanges)] {
		details = append(details, fmt.Sprintf("%s is %q, expected %q", c.Object, c.Actual, c.Expected))
	}
	if more := len(changes) - shownChanges; more > 0 {
		details = append(details, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s. The database was left unchanged. Undo the manual change, or restore a backup", ErrSchemaChanged, strings.Join(details, "; "))
}

// tables returns the table names of a catalog. Object names look like "column
// item.price".
func (o Objects) tables() []string {
	names := map[string]bool{}
	for object := range o {
		table, _, _ := strings.Cut(object[strings.LastIndexByte(object, ' ')+1:], ".")
		names[table] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// expectedCatalog returns the schema objects that the migrations create, and the query
// that selects the same objects from a database.
func expectedCatalog(ctx context.Context, d Dialect) (want Objects, query string, err error) {
	if d == PostgreSQL {
		want, err = ParseObjects(postgresCatalog)
		return want, selectCatalogPostgres, err
	}
	model, err := ModelSQLite(ctx)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	tables, err := tablesSQLite(ctx, model)
	if err != nil {
		return nil, "", err
	}
	want, err = ReadObjects(ctx, model, selectCatalogSQLite, ownTables(tables))
	return want, selectCatalogSQLite, err
}

// ownTables returns the names of all tables except goose_db_version, separated by commas.
// The migration library defines the columns of that table.
func ownTables(tables []copyTable) string {
	var names []string
	for _, t := range tables {
		if t.name != "goose_db_version" {
			names = append(names, t.name)
		}
	}
	return strings.Join(names, ",")
}

// selectCatalogSQLite selects the columns and unique indexes of tables. Its parameter
// is a list of table names, separated by commas.
const selectCatalogSQLite = `
SELECT 'column ' || t.name || '.' || c.name, lower(c.type) || CASE WHEN c."notnull" THEN ' not null' ELSE '' END ||
	CASE WHEN c.dflt_value IS NULL THEN '' ELSE ' default ' || c.dflt_value END || CASE WHEN c.pk > 0 THEN ' key ' || c.pk ELSE '' END
FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type IN ('table', 'view') AND instr(',' || $1 || ',', ',' || t.name || ',') > 0
UNION ALL
SELECT 'unique index ' || t.name || '.' || x.name, (SELECT group_concat(k.name, ', ') FROM (SELECT name FROM pragma_index_info(x.name) ORDER BY seqno) k)
	|| CASE WHEN x.partial THEN ' in part' ELSE '' END
FROM sqlite_schema t, pragma_index_list(t.name) x WHERE t.type = 'table' AND instr(',' || $1 || ',', ',' || t.name || ',') > 0 AND x."unique"`

// postgresCatalog is the result of selectCatalogPostgres on a new database.
// TestCatalog_PostgresIsTheOneStored writes it.
//
//go:embed catalog_postgres.txt
var postgresCatalog string

// selectCatalogPostgres is selectCatalogSQLite for PostgreSQL. It reads the given
// tables only, because the dispatcher may create its own tables concurrently.
const selectCatalogPostgres = `
WITH named AS (
	SELECT c.oid, relname, relkind = 'p' AS divided FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE nspname = ANY (current_schemas(false)) AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY (string_to_array($1, ',')) AND c.oid = to_regclass(quote_ident(relname))
), partitions AS (
	SELECT c.oid, c.relname, t.relname AS parent, pg_get_expr(c.relpartbound, c.oid) AS bound FROM named t JOIN pg_inherits ON inhparent = t.oid JOIN pg_class c ON c.oid = inhrelid
), tables AS (
	SELECT oid, relname, false AS part FROM named
	UNION ALL SELECT oid, relname, true FROM partitions
)
SELECT 'column ' || relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
	CASE WHEN attcollation <> 0 AND collname <> 'default' THEN 'COLLATE ' || collname END, CASE WHEN attnotnull THEN 'NOT NULL' END,
	'DEFAULT ' || pg_get_expr(adbin, adrelid), CASE WHEN attidentity <> '' AND NOT part THEN 'IDENTITY ' || attidentity::text END,
	CASE WHEN attgenerated <> '' THEN 'GENERATED ' || attgenerated::text END)
FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum LEFT JOIN pg_collation l ON l.oid = attcollation
UNION ALL
SELECT 'unique index ' || t.relname || '.' || coalesce(p.relname, i.relname), concat_ws(', ', regexp_replace(pg_get_indexdef(indexrelid, 0, true), '^.* USING ', ''),
	CASE WHEN NOT indisvalid OR NOT indisready OR NOT indislive THEN 'not valid' END, CASE WHEN NOT indimmediate THEN 'deferred' END)
FROM tables t JOIN pg_index x ON indrelid = t.oid JOIN pg_class i ON i.oid = indexrelid
	LEFT JOIN pg_inherits h ON inhrelid = indexrelid LEFT JOIN pg_class p ON p.oid = inhparent WHERE indisunique
UNION ALL
SELECT 'partition key ' || relname, pg_get_partkeydef(oid) FROM named WHERE divided
UNION ALL
SELECT 'partition ' || parent || '.' || relname, bound FROM partitions WHERE bound IS NOT NULL`
