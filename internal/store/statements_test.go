package store_test

import (
	"database/sql"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/internal/store"
)

// TestSQLite_PreparesEveryStatement finds the statements in the source, puts
// those that are made of parts together and prepares each: a column, table or
// function that the schema or the database does not know is found here, whether
// or not a test comes by.
func TestSQLite_PreparesEveryStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	s, err := store.Open(t.Context(), store.Options{Path: path})
	must(t, err)
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()

	statements := readStatements(t)
	t.Logf("%d statements", len(statements))
	if len(statements) < 130 {
		t.Errorf("found only %d statements", len(statements))
	}
	for _, st := range statements {
		if err := prepare(t, db, st.text); err != nil {
			t.Errorf("%s: %v in %s", st.at, err, st.text)
		}
	}
}

// TestSQLite_RefusesAnUnknownColumn shows that the test above would notice.
func TestSQLite_RefusesAnUnknownColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.db")
	s, err := store.Open(t.Context(), store.Options{Path: path})
	must(t, err)
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	for _, text := range []string{"SELECT no_such FROM item", "UPDATE item SET no_such = 1", "SELECT 1 FROM no_such"} {
		if err := prepare(t, db, text); err == nil {
			t.Errorf("prepared %s", text)
		}
	}
}

// prepare reports whether the database takes a statement.
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

// readStatements finds every SQL statement of this package.
func readStatements(t *testing.T) []statement {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		must(t, err)
		parsed = append(parsed, f)
	}
	r := reader{constants: map[string]ast.Expr{}}
	for _, f := range parsed {
		for _, d := range f.Decls {
			r.note(d)
		}
	}
	var out []statement
	for _, f := range parsed {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			r.columns = columnsOf(fn)
			var visit func(n ast.Node) bool
			visit = func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				if s, ok := e.(*ast.SelectorExpr); ok {
					ast.Inspect(s.X, visit) // a method may have a constant's name
					return false
				}
				texts := r.texts(e)
				for _, text := range texts {
					if isStatement(text) {
						at := files.Position(e.Pos())
						out = append(out, statement{fmt.Sprintf("%s:%d", at.Filename, at.Line), text})
					}
				}
				return texts == nil // the parts of a sum are no statements
			}
			ast.Inspect(fn.Body, visit)
		}
	}
	return out
}

func isStatement(text string) bool {
	words := strings.Fields(text)
	return len(words) > 2 && slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, words[0])
}

// reader puts texts together.
type reader struct {
	constants map[string]ast.Expr
	columns   string // of the function that is being read
}

// note remembers the constants of a declaration.
func (r *reader) note(d ast.Decl) {
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return
	}
	for _, spec := range g.Specs {
		v, ok := spec.(*ast.ValueSpec)
		for i := range v.Names {
			if ok && i < len(v.Values) {
				r.constants[v.Names[i].Name] = v.Values[i]
			}
		}
	}
}

// columnsOf returns what a function declares as its constant columns.
func columnsOf(fn *ast.FuncDecl) (n string) {
	ast.Inspect(fn, func(node ast.Node) bool {
		if v, ok := node.(*ast.ValueSpec); ok && len(v.Values) == 1 && v.Names[0].Name == "columns" {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				n = lit.Value
			}
		}
		return true
	})
	return n
}

// texts returns what a string expression can be; nil if it is none. A call of
// values stands for two rows; a variable named from is each part of a plan that
// it can be.
func (r *reader) texts(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []string{constant.StringVal(constant.MakeFromLiteral(e.Value, token.STRING, 0))}
		}
	case *ast.Ident:
		if c, ok := r.constants[e.Name]; ok {
			return r.texts(c)
		}
		if e.Name == "from" {
			var out []string
			for _, part := range []string{"planScope", "planRetry", "planMissing"} {
				out = append(out, r.texts(r.constants[part])...)
			}
			return out
		}
	case *ast.CallExpr:
		if fn, ok := e.Fun.(*ast.Ident); ok && fn.Name == "values" {
			n := r.width(e.Args[1])
			if n == 0 {
				return nil
			}
			row := "(" + strings.TrimSuffix(strings.Repeat("?,", n), ",") + ")"
			return []string{row + "," + row}
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return nil
		}
		left, right := r.texts(e.X), r.texts(e.Y)
		var out []string
		for _, a := range left {
			for _, b := range right {
				out = append(out, a+b)
			}
		}
		return out
	}
	return nil
}

// width returns the number of columns that an argument of values stands for; 0
// if it cannot be told.
func (r *reader) width(arg ast.Expr) (n int) {
	text := r.columns
	if id, ok := arg.(*ast.Ident); ok {
		if lit, ok := r.constants[id.Name].(*ast.BasicLit); ok {
			text = lit.Value
		}
	}
	_, _ = fmt.Sscan(text, &n)
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	must(tb, os.WriteFile(path, []byte(text), 0o600))
}
