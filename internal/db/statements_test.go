package db_test

import (
	"database/sql"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/internal/db"
)

// TestSQL_EveryStatementIsPrepared finds all SQL statements in the source code, joins
// statements that are built from parts, and prepares each of them. This finds unknown
// columns, tables and functions even in code that no other test runs.
func TestSQL_EveryStatementIsPrepared(t *testing.T) {
	for name, dialect := range dialects {
		t.Run(name, func(t *testing.T) {
			raw := openRaw(t, name)
			statements := readStatements(t, dialect)
			t.Logf("checked %d statements", len(statements))
			if len(statements) < 130 {
				t.Errorf("got %d statements, want at least 130", len(statements))
			}
			if dialect == db.PostgreSQL {
				for _, text := range db.BulkTexts() {
					statements = append(statements, statement{"bulk.go", text})
				}
			}
			for _, st := range statements {
				if err := prepare(t, raw, st.text); err != nil {
					t.Errorf("%s: got error %v, want none, for the statement %s", st.at, err, st.text)
				}
			}
		})
	}
}

// TestSQL_AnUnknownColumnIsFound verifies that preparing a statement detects unknown
// names.
func TestSQL_AnUnknownColumnIsFound(t *testing.T) {
	for name := range dialects {
		t.Run(name, func(t *testing.T) {
			raw := openRaw(t, name)
			for _, text := range []string{"SELECT no_such FROM item", "UPDATE item SET no_such = 1", "SELECT 1 FROM no_such"} {
				if err := prepare(t, raw, text); err == nil {
					t.Errorf("invalid statement %s: got no error, want one", text)
				}
			}
		})
	}
}

var (
	written  = regexp.MustCompile("(?:INSERT (?:OR [A-Z]+ )?INTO|UPDATE|DELETE FROM|TRUNCATE|MERGE INTO|COPY)\\s+(?:([a-z]+(?:_[a-z]+)*)\\b|[`\"])|\\bCopyFrom")
	tableRow = regexp.MustCompile("(?m)^\\| (`[^|]*)\\| `([a-z/]+)` \\|(.*)\\|$")
	quoted   = regexp.MustCompile("`([a-z/_*]+)`")
)

// TestSQL_OnlyOwnersWriteTables compares the tables that each package writes with the owners
// in the decision record docs/adr/0023-sql-beside-its-subject.md.
func TestSQL_OnlyOwnersWriteTables(t *testing.T) {
	record, err := os.ReadFile("../../docs/adr/0023-sql-beside-its-subject.md")
	must(t, err)
	type row struct {
		tables, writers map[string]bool // true if a statement uses the name
	}
	names := func(cells string) map[string]bool {
		out := map[string]bool{}
		for _, name := range quoted.FindAllStringSubmatch(cells, -1) {
			out[name[1]] = false
		}
		return out
	}
	var rows []row
	for _, cells := range tableRow.FindAllStringSubmatch(string(record), -1) {
		writers := names(cells[3])
		writers[cells[2]] = false
		rows = append(rows, row{names(cells[1]), writers})
	}
	if len(rows) < 15 {
		t.Fatalf("the record: got %d rows, want at least 15", len(rows))
	}
	find := func(table string) (row, string) {
		for _, r := range rows {
			for pattern := range r.tables {
				if match, err := path.Match(pattern, table); err == nil && match {
					return r, pattern
				}
			}
		}
		return row{}, ""
	}
	for _, name := range productionFiles(t) {
		source, err := os.ReadFile(name)
		must(t, err)
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")
		for _, w := range written.FindAllStringSubmatch(string(source), -1) {
			table := w[1]
			r, pattern := find(table)
			_, allowed := r.writers[pkg]
			switch {
			case pkg == "db" && (table == "" || table == "sqlite_sequence" || table == "goose_db_version"): // a copy writes all tables
			case table == "":
				t.Errorf("%s: got no table name after %q, want one", name, w[0])
			case pattern == "":
				t.Errorf("%s: got no owner of the table %s in the record, want one", name, table)
			case !allowed:
				t.Errorf("%s: got a write to the table %s, want writes only by %v as in the record", name, table, slices.Sorted(maps.Keys(r.writers)))
			default:
				r.tables[pattern], r.writers[pkg] = true, true
			}
		}
	}
	for _, r := range rows {
		for table, used := range r.tables {
			if !used {
				t.Errorf("table %s of the record: got no statement that writes it, want one", table)
			}
		}
		for pkg, used := range r.writers {
			if !used {
				t.Errorf("writer %s in the record: got no statement that writes %v, want one", pkg, slices.Sorted(maps.Keys(r.tables)))
			}
		}
	}
}

// TestSQL_OneConventionForMissingRows verifies that only db.Found uses sql.ErrNoRows.
func TestSQL_OneConventionForMissingRows(t *testing.T) {
	for _, name := range productionFiles(t) {
		source, err := os.ReadFile(name)
		must(t, err)
		if strings.Contains(string(source), "sql.ErrNoRows") && filepath.ToSlash(name) != "../db/db.go" {
			t.Errorf("%s uses sql.ErrNoRows, want db.Found", name)
		}
	}
}

// prepare returns an error if the database rejects a statement.
func prepare(tb testing.TB, db *sql.DB, text string) error {
	tb.Helper()
	stmt, err := db.PrepareContext(tb.Context(), text)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return nil
}

type statement struct{ at, text string }

// readStatements finds every SQL statement for a dialect. It skips functions and
// constants with the suffix of the other dialect. Arguments of ExecPostgres are for
// PostgreSQL only.
func readStatements(t *testing.T, d db.Dialect) []statement {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range sqlFiles(t) {
		f, err := parser.ParseFile(files, name, nil, 0)
		must(t, err)
		parsed = append(parsed, f)
	}
	r := reader{dialect: d, constants: map[string]ast.Expr{}}
	for _, f := range parsed {
		r.pkg = f.Name.Name
		for _, d := range f.Decls {
			r.note(d)
		}
	}
	var out []statement
	for _, f := range parsed {
		r.pkg = f.Name.Name
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || r.foreign(fn.Name.Name) {
				continue
			}
			r.locals = localsOf(fn)
			var visit func(n ast.Node) bool
			visit = func(n ast.Node) bool {
				if r.dialect == db.SQLite && calls(n, "ExecPostgres") {
					return false
				}
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				if s, ok := e.(*ast.SelectorExpr); ok && r.texts(s) == nil {
					ast.Inspect(s.X, visit) // a method may have the same name as a constant
					return false
				}
				texts := r.texts(e)
				for _, text := range texts {
					if isStatement(text) && !strings.Contains(text, "inventory_before") { // exists only while the inventory is divided
						at := files.Position(e.Pos())
						out = append(out, statement{fmt.Sprintf("%s:%d", at.Filename, at.Line), text})
					}
				}
				return texts == nil // parts of a concatenation are not statements
			}
			ast.Inspect(fn.Body, visit)
		}
	}
	return out
}

// sqlFiles returns the source files that contain SQL.
func sqlFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(productionFiles(t), func(name string) bool {
		return !strings.HasSuffix(name, "_sql.go") && filepath.Base(filepath.Dir(name)) != "db"
	})
}

// productionFiles returns the source files of all packages, except tests.
func productionFiles(t *testing.T) (files []string) {
	t.Helper()
	must(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func isStatement(text string) bool {
	words := strings.Fields(text)
	return len(words) > 2 && slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, words[0])
}

// reader evaluates string expressions in the source code.
type reader struct {
	dialect   db.Dialect
	constants map[string]ast.Expr   // keyed by package and name
	pkg       string                // the current package
	locals    map[string][]ast.Expr // of the current function
}

// foreign reports whether the suffix of a name belongs to the other dialect.
func (r *reader) foreign(name string) bool {
	if r.dialect == db.PostgreSQL {
		return strings.HasSuffix(name, "SQLite")
	}
	return strings.HasSuffix(name, "Postgres")
}

// calls reports whether a node is a call of a method.
func calls(n ast.Node, method string) bool {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == method
}

// note stores the constants of a declaration.
func (r *reader) note(d ast.Decl) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return
	}
	for _, spec := range g.Specs {
		v, ok := spec.(*ast.ValueSpec)
		for i := range v.Names {
			if ok && i < len(v.Values) {
				r.constants[r.pkg+"."+v.Names[i].Name] = v.Values[i]
			}
		}
	}
}

// localsOf returns the expressions that are assigned to each variable of a function.
func localsOf(fn *ast.FuncDecl) map[string][]ast.Expr {
	out := map[string][]ast.Expr{}
	ast.Inspect(fn, func(node ast.Node) bool {
		if a, ok := node.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i := range a.Lhs {
				if id, ok := a.Lhs[i].(*ast.Ident); ok {
					out[id.Name] = append(out[id.Name], a.Rhs[i])
				}
			}
		}
		return true
	})
	return out
}

// texts returns the possible values of a string expression, or nil for other expressions. A
// variable has every value that is assigned to it. The variable "from" is a parameter: it has the
// FROM clause of each kind of plan.
func (r *reader) texts(e ast.Expr) (out []string) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []string{constant.StringVal(constant.MakeFromLiteral(e.Value, token.STRING, 0))}
		}
	case *ast.Ident:
		if r.foreign(e.Name) {
			return nil
		}
		if c, ok := r.constants[r.pkg+"."+e.Name]; ok {
			return r.texts(c)
		}
		parts := r.locals[e.Name]
		if e.Name == "from" {
			parts = []ast.Expr{r.constants["refresh.planScope"], r.constants["refresh.planRetry"], r.constants["refresh.planMissing"]}
		}
		for _, part := range parts {
			if id, ok := part.(*ast.Ident); !ok || id.Name != e.Name {
				out = append(out, r.texts(part)...)
			}
		}
	case *ast.SelectorExpr: // a constant of another package
		if pkg, ok := e.X.(*ast.Ident); ok && r.constants[pkg.Name+"."+e.Sel.Name] != nil {
			other := *r
			other.pkg, other.locals = pkg.Name, nil
			return other.texts(r.constants[pkg.Name+"."+e.Sel.Name])
		}
	case *ast.CallExpr:
		return r.fragment(e)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return nil
		}
		left, right := r.texts(e.X), r.texts(e.Y)
		for _, a := range left {
			for _, b := range right {
				out = append(out, a+b)
			}
		}
	}
	return out
}

// fragment returns the result of a call of a Dialect method, or nil for other calls.
func (r *reader) fragment(call *ast.CallExpr) []string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if _, ok := db.Fragment(r.dialect, method.Sel.Name, 0, ""); !ok {
		return nil
	}
	var n int
	var text string
	for _, arg := range call.Args {
		if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.INT {
			_, _ = fmt.Sscan(lit.Value, &n)
		} else if texts := r.texts(arg); len(texts) > 0 {
			text = texts[0]
		}
	}
	fragment, _ := db.Fragment(r.dialect, method.Sel.Name, n, text)
	return []string{fragment}
}
