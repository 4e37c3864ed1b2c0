package config

import (
	"fmt"
	"os"
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
		t.Fatalf("%s: the comments around the table are missing", path)
	}
	want := head + from + settingsTable() + to + tail
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Errorf("%s is out of date; run make generate", path)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| name | default | meaning |\n|---|---|---|\n")
	for _, d := range Definitions(known()) {
		def := ""
		if d.Default != "" {
			def = "`" + d.Default + "`"
		}
		name := "`" + d.Name + "`"
		if d.File {
			name += " †"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, def, d.Help)
	}
	return b.String()
}
