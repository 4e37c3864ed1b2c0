package db_test

import (
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/db"
)

// documentedTable is a table as the reference pages describe it.
type documentedTable struct {
	columns []string
	types   map[string]string
	keys    string
}

// documentedTables returns all tables and views that the migrations create. The column order is
// the order in SQLite. The types are the types in PostgreSQL.
func documentedTables(t *testing.T) map[string]*documentedTable {
	t.Helper()
	text, err := os.ReadFile("catalog_postgres.txt")
	must(t, err)
	types, err := db.ParseObjects(string(text))
	must(t, err)
	model, err := db.ModelSQLite(t.Context())
	must(t, err)
	defer func() { must(t, model.Close()) }()
	all := map[string]*documentedTable{}
	rows(t, model, `SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite%' AND t.name <> 'goose_db_version' ORDER BY t.name, c.cid`, func(table, column string) {
		if all[table] == nil {
			all[table] = &documentedTable{types: map[string]string{}}
		}
		all[table].columns = append(all[table].columns, column)
		kind, ok := types["column "+table+"."+column]
		if !ok { // a column of a view
			return
		}
		kind, _, _ = strings.Cut(kind, " DEFAULT ")
		kind, _, _ = strings.Cut(kind, " IDENTITY ")
		kind, required := strings.CutSuffix(kind, " NOT NULL")
		if kind = strings.TrimSuffix(kind, " COLLATE C"); !required {
			kind += " or null"
		}
		all[table].types[column] = kind
	})
	add := func(kind string) func(table, columns string) {
		return func(table, columns string) {
			key := kind + ": `" + strings.ReplaceAll(columns, ", ", "`, `") + "`."
			if d := all[table]; d != nil && !strings.Contains(d.keys, key[strings.Index(key, ":"):]) {
				d.keys = strings.TrimSpace(d.keys + " " + key)
			}
		}
	}
	rows(t, model, `SELECT t.name, (SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_table_info(t.name) WHERE pk > 0 ORDER BY pk)) AS key
		FROM sqlite_schema t WHERE t.type = 'table' AND key IS NOT NULL`, add("Primary key"))
	rows(t, model, `SELECT t.name, (SELECT group_concat(name, ', ') FROM (SELECT name FROM pragma_index_info(x.name) ORDER BY seqno)) AS key
		FROM sqlite_schema t, pragma_index_list(t.name) x WHERE t.type = 'table' AND x."unique" AND NOT x.partial AND key IS NOT NULL ORDER BY t.name, x.name`, add("Unique"))
	return all
}

// rows runs a query that selects two texts, and calls fn for each row.
func rows(t *testing.T, model *sql.DB, query string, fn func(a, b string)) {
	t.Helper()
	found, err := model.QueryContext(t.Context(), query)
	must(t, err)
	defer func() { must(t, found.Close()) }()
	for found.Next() {
		var a, b string
		must(t, found.Scan(&a, &b))
		fn(a, b)
	}
	must(t, found.Err())
}

var (
	tableOnPage = regexp.MustCompile("(?sm)^(##+ `(\\w+)`[^\n]*\n.*?)((?:^\\|[^\n]*\n)+)(?:\n(?:Primary key|Unique): [^\n]*\n)?")
	nameInCell  = regexp.MustCompile("`(\\w+)`")
)

// render returns the Markdown rows of a table. It takes the columns and types from the database
// and the meanings from onPage, the current rows of the page.
func (d *documentedTable) render(t *testing.T, table, onPage string) string {
	t.Helper()
	var out strings.Builder
	if len(d.types) == 0 {
		out.WriteString("| column | meaning |\n|---|---|\n")
	} else {
		out.WriteString("| column | type | meaning |\n|---|---|---|\n")
	}
	described := map[string]bool{}
	row := func(columns []string, meaning string) {
		var types []string
		for _, c := range columns {
			described[c] = true
			types = append(types, d.types[c])
		}
		if len(slices.Compact(slices.Clone(types))) == 1 {
			types = types[:1]
		}
		kind := strings.Join(types, ", ") + " | "
		if len(d.types) == 0 {
			kind = ""
		}
		out.WriteString("| `" + strings.Join(columns, "`, `") + "` | " + kind + strings.TrimPrefix(meaning+" |", " ") + "\n")
	}
	lines := strings.Split(strings.TrimSpace(onPage), "\n")
	for _, line := range lines[min(2, len(lines)):] {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		var columns []string
		for _, m := range nameInCell.FindAllStringSubmatch(cells[0], -1) {
			if slices.Contains(d.columns, m[1]) {
				columns = append(columns, m[1])
			}
		}
		if columns != nil {
			row(columns, strings.TrimSpace(cells[len(cells)-1]))
		}
	}
	for _, c := range d.columns {
		if !described[c] {
			t.Errorf("column %s of %s has no meaning: add the row | `%[1]s` | its meaning | to the page", c, table)
		}
	}
	if d.keys != "" {
		out.WriteString("\n" + d.keys + "\n")
	}
	return out.String()
}

// TestTables_AreTheDocumentedOnes compares the columns, types and keys on the pages with the
// migrations. With ASSAY_UPDATE=1 it rewrites the pages and keeps the meanings.
func TestTables_AreTheDocumentedOnes(t *testing.T) {
	all := documentedTables(t)
	if len(all) < 50 {
		t.Fatalf("found %d tables, want at least 50: the test no longer recognizes them", len(all))
	}
	for _, path := range []string{"../../docs/reference/database.md", "../../docs/contribute/database.md"} {
		text, err := os.ReadFile(path)
		must(t, err)
		page := tableOnPage.ReplaceAllStringFunc(string(text), func(part string) string {
			m := tableOnPage.FindStringSubmatch(part)
			d := all[m[2]]
			if d == nil {
				t.Errorf("%s describes the table %s, which does not exist or was described before", path, m[2])
				return part
			}
			delete(all, m[2])
			return m[1] + d.render(t, m[2], m[3])
		})
		if os.Getenv("ASSAY_UPDATE") == "1" {
			must(t, os.WriteFile(path, []byte(page), 0o600))
		} else if d := cmp.Diff(page, string(text)); d != "" {
			t.Errorf("%s is out of date: run make generate (-want +got):\n%s", path, d)
		}
	}
	for table := range all {
		t.Errorf("the table %s is on no page", table)
	}
}
