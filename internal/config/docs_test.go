package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDefinitions_AreTheDocumentedOnes compares the table in the documentation with the
// settings. With ASSAY_UPDATE=1 it rewrites the table.
func TestDefinitions_AreTheDocumentedOnes(t *testing.T) {
	const path = "../../docs/reference/configuration.md"
	const from, to = "<!-- settings: make generate -->\n", "<!-- end of settings -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), from)
	_, tail, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s: got no comments around the table, want both", path)
	}
	want := head + from + settingsTable(t) + to + tail
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("%s: got an outdated table, want the current table: run make generate", path)
	}
}

// settingsTable returns the Markdown table of all settings. Settings that differ only in the
// provider share a row.
func settingsTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| name | default | meaning |\n|---|---|---|\n")
	rows := map[string][]string{} // names by meaning
	var order []Definition
	for _, d := range Definitions(providerNames(t)) {
		for _, provider := range providerNames(t) {
			d.Help = strings.Replace(d.Help, "of `"+provider+"`", "of the provider", 1)
			d.Help = strings.Replace(d.Help, "to `"+provider+"`,", "to the provider,", 1)
		}
		if len(rows[d.Help]) == 0 {
			order = append(order, d)
		}
		rows[d.Help] = append(rows[d.Help], "`"+d.Name+"`")
	}
	for _, d := range order {
		def := ""
		if d.Default != "" {
			def = "`" + d.Default + "`"
		}
		name := strings.Join(rows[d.Help], ", ")
		if d.File {
			name += " †"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, def, d.Help)
	}
	return b.String()
}

// providerNames returns the names of all providers. This package cannot import them, because
// they import it.
func providerNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../provider/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^const Name = "(\w+)"$`).FindSubmatch(text); m != nil {
			names = append(names, string(m[1]))
		}
	}
	if len(names) < 8 {
		t.Fatalf("found %d providers, want at least 8", len(names))
	}
	return names
}
