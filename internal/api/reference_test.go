package api

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generatedPart compares the part of a page between `<!-- name: make generate -->` and
// `<!-- end of name -->` with want. With ASSAY_UPDATE=1 it rewrites that part.
func generatedPart(t *testing.T, path, name, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := "<!-- "+name+": make generate -->\n", "<!-- end of "+name+" -->"
	head, rest, found := strings.Cut(string(text), from)
	_, tail, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s: the comments around %q are missing", path, name)
	}
	page := head + from + want + to + tail
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(page, string(text)); d != "" {
		t.Errorf("%s is out of date: run make generate (-want +got):\n%s", path, d)
	}
}

// routesTable returns the table rows of the routes with one of the tags. It omits the problem
// statuses that all routes with a credential or a body share. The page describes them once.
func routesTable(operations []operation, tags []string) string {
	var table strings.Builder
	table.WriteString("| route | credential, scope | what it does | problems |\n|---|---|---|---|\n")
	for _, op := range operations {
		if !slices.Contains(tags, tag(op.path)) {
			continue
		}
		query := ""
		for _, p := range op.params {
			if p.in == "query" && p.doc != nameQuery.doc {
				query += "&" + p.name + "="
			}
		}
		if query != "" {
			query = " `?" + query[1:] + "`"
		}
		access := "admin"
		if len(op.access) > 0 {
			access = strings.Join(op.access, ", ")
		}
		if op.access == nil {
			access = "none"
		}
		if scope := op.scope(); scope != "" {
			access += ", `" + scope + "`"
		}
		summary := op.summary
		if op.body != nil && op.body.key == keyRequired {
			summary += " Requires an `Idempotency-Key`."
		} else if op.body != nil && op.body.key == keyOptional {
			summary += " Takes an `Idempotency-Key`."
		}
		var problems []string
		for _, status := range op.problems() {
			if slices.Contains([]int{404, 409, 410, 422, 502}, status) {
				problems = append(problems, fmt.Sprint(status))
			}
		}
		cells := fmt.Sprintf("| `%s %s`%s | %s | %s | %s |\n", op.method, op.path, query, access, summary, strings.Join(problems, ", "))
		table.WriteString(strings.ReplaceAll(cells, "|  |", "| |"))
	}
	return table.String()
}

// TestRoutes_AreTheDocumentedOnes compares the tables of docs/reference/http-api.md with the routes.
func TestRoutes_AreTheDocumentedOnes(t *testing.T) {
	const path = "../../docs/reference/http-api.md"
	operations := startServer(t, nil).api.routes.operations
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for _, m := range regexp.MustCompile(`<!-- (routes of ([^:]+)): make generate -->`).FindAllStringSubmatch(string(page), -1) {
		tags := strings.Split(m[2], ", ")
		generatedPart(t, path, m[1], routesTable(operations, tags))
		for _, tag := range tags {
			shown[tag]++
		}
	}
	for _, op := range operations {
		if n := shown[tag(op.path)]; n != 1 {
			t.Errorf("%s %s: got %d tables with its tag %s, want 1", op.method, op.path, n, tag(op.path))
		}
	}
}
