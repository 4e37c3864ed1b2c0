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

// The fingerprint shows which build made a schema, not that it is still so. A start also
// compares each table: a column or key that was changed by hand would make a running server
// answer with errors. Tables and plain indexes that an operator adds are ignored; the
// ledger verification checks triggers, policies and owners.

// ErrSchemaChanged means that a table is not as this program made it.
var ErrSchemaChanged = errors.New("the schema was changed by hand")

// shownChanges is how many changes an error names.
const shownChanges = 5

// checkCatalogue refuses a database of the newest schema that has a table other than the
// migrations make it.
func checkCatalogue(ctx context.Context, d Dialect, q Querier) error {
	want, query, err := wantedCatalogue(ctx, d)
	if err != nil {
		return err
	}
	have, err := ReadObjects(ctx, q, query, strings.Join(want.tables(), ","))
	if err != nil {
		return fmt.Errorf("compare the schema: %w", err)
	}
	changes := want.Compare(have)
	if len(changes) == 0 {
		return nil
	}
	var said []string
	for _, c := range changes[:min(len(changes), shownChanges)] {
		said = append(said, fmt.Sprintf("%s is %q, this build makes %q", c.Object, c.Actual, c.Expected))
	}
	if more := len(changes) - shownChanges; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s. Nothing was changed now. Undo the change, or restore a backup", ErrSchemaChanged, strings.Join(said, "; "))
}

// tables returns the tables of a catalogue, whose objects are called such as "column
// item.price".
func (o Objects) tables() []string {
	names := map[string]bool{}
	for object := range o {
		table, _, _ := strings.Cut(object[strings.LastIndexByte(object, ' ')+1:], ".")
		names[table] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// wantedCatalogue returns what the migrations make, and what selects the same of a
// database.
func wantedCatalogue(ctx context.Context, d Dialect) (want Objects, query string, err error) {
	if d == PostgreSQL {
		want, err = ParseObjects(postgresCatalogue)
		return want, selectCataloguePostgres, err
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
	want, err = ReadObjects(ctx, model, selectCatalogueSQLite, ownTables(tables))
	return want, selectCatalogueSQLite, err
}

// ownTables joins the names of all tables but that of the library that migrates, whose
// form is not ours.
func ownTables(tables []copyTable) string {
	var names []string
	for _, t := range tables {
		if t.name != "goose_db_version" {
			names = append(names, t.name)
		}
	}
	return strings.Join(names, ",")
}

// selectCatalogueSQLite selects columns and unique indexes of the tables that are named,
// with commas between them.
const selectCatalogueSQLite = `
SELECT 'column ' || t.name || '.' || c.name, lower(c.type) || CASE WHEN c."notnull" THEN ' not null' ELSE '' END ||
	CASE WHEN c.dflt_value IS NULL THEN '' ELSE ' default ' || c.dflt_value END || CASE WHEN c.pk > 0 THEN ' key ' || c.pk ELSE '' END
FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type IN ('table', 'view') AND instr(',' || $1 || ',', ',' || t.name || ',') > 0
UNION ALL
SELECT 'unique index ' || t.name || '.' || x.name, (SELECT group_concat(k.name, ', ') FROM (SELECT name FROM pragma_index_info(x.name) ORDER BY seqno) k)
	|| CASE WHEN x.partial THEN ' in part' ELSE '' END
FROM sqlite_schema t, pragma_index_list(t.name) x WHERE t.type = 'table' AND instr(',' || $1 || ',', ',' || t.name || ',') > 0 AND x."unique"`

// postgresCatalogue is what selectCataloguePostgres finds in a new database. A test
// makes it, like postgresObjects.
//
//go:embed catalogue_postgres.txt
var postgresCatalogue string

// selectCataloguePostgres is the same. It looks at no other tables: those of the
// dispatcher may be made at the same time.
const selectCataloguePostgres = `
WITH tables AS (
	SELECT c.oid, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE nspname = ANY (current_schemas(false)) AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY (string_to_array($1, ',')) AND c.oid = to_regclass(quote_ident(relname))
)
SELECT 'column ' || relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
	CASE WHEN attcollation <> 0 AND collname <> 'default' THEN 'COLLATE ' || collname END, CASE WHEN attnotnull THEN 'NOT NULL' END,
	'DEFAULT ' || pg_get_expr(adbin, adrelid), CASE WHEN attidentity <> '' THEN 'IDENTITY ' || attidentity::text END,
	CASE WHEN attgenerated <> '' THEN 'GENERATED ' || attgenerated::text END)
FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum LEFT JOIN pg_collation l ON l.oid = attcollation
UNION ALL
SELECT 'unique index ' || t.relname || '.' || i.relname, concat_ws(', ', regexp_replace(pg_get_indexdef(indexrelid, 0, true), '^.* USING ', ''),
	CASE WHEN NOT indisvalid OR NOT indisready OR NOT indislive THEN 'not valid' END, CASE WHEN NOT indimmediate THEN 'deferred' END)
FROM tables t JOIN pg_index x ON indrelid = t.oid JOIN pg_class i ON i.oid = indexrelid WHERE indisunique`
