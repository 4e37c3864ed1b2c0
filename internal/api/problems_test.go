package api

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay/internal/fault"
)

// TestProblems_AreTheDocumentedOnes compares docs/reference/problems.md with problems.txt.
// With ASSAY_UPDATE=1 it rewrites the table of the page.
func TestProblems_AreTheDocumentedOnes(t *testing.T) {
	const path = "../../docs/reference/problems.md"
	all, err := readProblems(problemsFile)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| status | `code` | meaning | what to do |\n|---|---|---|---|\n")
	for _, p := range all {
		fmt.Fprintf(&table, "| %d | `%s` | %s | %s |\n", p.status, strings.Join(p.codes, "`, `"), p.meaning, p.solution)
	}
	generatedPart(t, path, "problems", table.String())
}

// problemStatuses returns the status of each code in problems.txt. A code must not occur twice.
func problemStatuses(t *testing.T) map[string]int {
	t.Helper()
	all, err := readProblems(problemsFile)
	if err != nil {
		t.Fatal(err)
	}
	statuses := map[string]int{}
	for _, p := range all {
		for _, code := range p.codes {
			if statuses[code] != 0 {
				t.Errorf("the code %s occurs twice in problems.txt", code)
			}
			statuses[code] = p.status
		}
	}
	return statuses
}

// TestProblems_HaveTheStatusOfTheirFault compares the statuses in problems.txt with the kinds of
// all faults in the source code that an HTTP response can contain.
func TestProblems_HaveTheStatusOfTheirFault(t *testing.T) {
	statuses := problemStatuses(t)
	kinds := map[string]fault.Kind{
		"Invalid": fault.Invalid, "Unauthorized": fault.Unauthorized, "Forbidden": fault.Forbidden, "NotFound": fault.NotFound, "Conflict": fault.Conflict,
		"Unprocessable": fault.Unprocessable, "TooLarge": fault.TooLarge, "Unavailable": fault.Unavailable, "Upstream": fault.Upstream,
		"Expired": fault.Expired, "Busy": fault.Busy, "Damaged": fault.Damaged,
	}
	made := regexp.MustCompile(`fault\.New\(fault\.(\w+),\s*"([a-z_]+)"`)
	checked := map[string]bool{}
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go", "../*/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			// The command line and the web pages have their own codes, and only a start reports
			// an invalid configuration.
			if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "../cli/") || strings.HasPrefix(file, "../web/") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range made.FindAllStringSubmatch(string(text), -1) {
				code := m[2]
				checked[code] = true
				if status, ok := statuses[code]; ok && status != kinds[m[1]].Status() {
					t.Errorf("%s: got the status %[3]d of the code %[2]s, want %[4]d as in problems.txt", file, code, kinds[m[1]].Status(), status)
				} else if !ok && code != "invalid_configuration" {
					t.Errorf("%s: the code %s is missing in problems.txt", file, code)
				}
			}
		}
	}
	if len(checked) < 70 {
		t.Errorf("found %d codes, want at least 70: the test no longer recognizes them", len(checked))
	}
}
