package pricelist

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of the reference page must be valid. The page must contain every preset and
// every member of a quote.
func TestReferencePage_IsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "pricelist.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 3 {
		t.Fatalf("got %d examples, want at least 3", len(examples))
	}
	for _, example := range examples {
		doc := example[1]
		if !strings.Contains(doc, `"lists"`) {
			doc = `{"lists":[` + doc + `]}`
		}
		if _, err := Parse([]byte(doc), Env{}); err != nil {
			t.Errorf("Parse: got error %v, want none, for the example\n%s", err, doc)
		}
	}
	for _, name := range PresetNames() {
		short := strings.TrimPrefix(name, "csgotrader")
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+short+"`") {
			t.Errorf("got a page without the preset %q, want it documented", name)
		}
	}
	for _, member := range quoteMembers() {
		if !strings.Contains(string(page), "`"+member+"`") {
			t.Errorf("got a page without the member %q, want it documented", member)
		}
	}
}
