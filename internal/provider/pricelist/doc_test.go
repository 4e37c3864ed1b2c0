package pricelist

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The examples of the reference page are read, and it names every preset.
func TestReferencePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "pricelist.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		doc := example[1]
		if !strings.Contains(doc, `"lists"`) {
			doc = `{"lists":[` + doc + `]}`
		}
		if _, err := Parse([]byte(doc), Env{}); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
	}
	for _, name := range PresetNames() {
		short := strings.TrimPrefix(name, "csgotrader")
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+short+"`") {
			t.Errorf("the page does not name preset %q", name)
		}
	}
	for _, member := range quoteMembers() {
		if !strings.Contains(string(page), "`"+member+"`") {
			t.Errorf("the page does not name member %q", member)
		}
	}
}
