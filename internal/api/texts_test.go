package api

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/api/apitest"
)

// TestTexts_MatchTheProperties checks that every property has a description and an example,
// and that every description has a property.
func TestTexts_MatchTheProperties(t *testing.T) {
	h := startServer(t, nil)
	types := newSchemas()
	describe(types, h.api.routes.operations, "1")
	for _, fault := range types.faults {
		t.Errorf("missing or wrong text of openapi.txt: %s", fault)
	}
	for name, r := range types.texts.records {
		for property := range r.properties {
			if !types.used[name+"."+property] {
				t.Errorf("openapi.txt describes %s.%s, which does not exist", name, property)
			}
		}
	}
	for _, op := range h.api.routes.operations {
		delete(types.texts.operations, op.method+" "+op.path)
		if !slices.ContainsFunc(types.texts.tags, func(text tagText) bool { return text.name == tag(op.path) }) {
			t.Errorf("the tag %s is not described", tag(op.path))
		}
	}
	for name := range types.texts.operations {
		t.Errorf("openapi.txt describes %s, which does not exist", name)
	}
	for name := range types.words {
		if types.components[name] == nil {
			t.Errorf("words.go has the list %s, which no property uses", name)
		}
	}
}

// TestTexts_EveryPropertyHasAnExample checks the examples in the served document.
func TestTexts_EveryPropertyHasAnExample(t *testing.T) {
	d := startServer(t, nil).document()
	schemas, _ := d.At("components", "schemas").(map[string]any)
	properties := 0
	for name, of := range schemas {
		described, _ := apitest.At(of, "properties").(map[string]any)
		for property, p := range described {
			properties++
			examples, _ := apitest.At(p, "examples").([]any)
			if text, _ := apitest.At(p, "description").(string); text == "" || len(examples) != 1 {
				t.Errorf("%s.%s: got %v, want a description and one example", name, property, p)
				continue
			}
			if err := d.Check(examples[0], "components", "schemas", name, "properties", property); err != nil && examples[0] != nil {
				t.Errorf("example of %s.%s: got error %v, want a valid example", name, property, err)
			}
		}
	}
	if properties < 300 {
		t.Errorf("got %d properties, want at least 300", properties)
	}
}

// TestTexts_StatesHaveEnumerations checks that string properties with names such as state or
// kind are enumerations.
func TestTexts_StatesHaveEnumerations(t *testing.T) {
	free := []string{ // texts for people, or texts from the operator
		"Checked.reason", "FeeMismatch.reason", "Unconfigured.reason", "Description.type",
	}
	closed := []string{"kind", "state", "stage", "status", "reason", "code", "method", "basis", "breaker", "type", "period", "shape", "why", "rounding", "check"}
	d := startServer(t, nil).document()
	schemas, _ := d.At("components", "schemas").(map[string]any)
	for name, of := range schemas {
		described, _ := apitest.At(of, "properties").(map[string]any)
		for property, p := range described {
			kind := apitest.At(p, "type")
			if kind != "string" && !cmp.Equal(kind, []any{"string", "null"}) || !slices.Contains(closed, property) {
				continue
			}
			if key := name + "." + property; !slices.Contains(free, key) && key != "Problem.type" && key != "RequestDebug.method" {
				t.Errorf("%s has no list in words.go", key)
			}
		}
	}
}

// TestWords_AreDocumented compares the lists in words.go with the reference pages.
func TestWords_AreDocumented(t *testing.T) {
	var pages strings.Builder
	for _, page := range []string{"reference/statuses-and-reasons.md", "reference/fee-rules.md", "reference/events.md", "reference/problems.md", "contribute/http-api.md", "contribute/fee-samples.md", "contribute/ledger.md", "contribute/pricing.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	for list, words := range wordLists() {
		if list == "ProblemCode" {
			continue // on a page of their own, which is generated
		}
		for _, word := range words {
			if word != none && !strings.Contains(pages.String(), "`"+word+"`") {
				t.Errorf("list %s: the word %q is not explained", list, word)
			}
		}
		if sorted := slices.Sorted(slices.Values(words)); len(slices.Compact(sorted)) != len(words) {
			t.Errorf("the list %s has a duplicate word", list)
		}
	}
}

// TestWords_IncludeAllConstants checks that the lists in words.go contain all constants of
// their types.
func TestWords_IncludeAllConstants(t *testing.T) {
	lists := wordLists()
	for list, from := range map[string]struct{ file, constants string }{
		"JobKind": {"refresh/refresh.go", `Kind`}, "JobState": {"refresh/refresh.go", `State`}, "JobStage": {"refresh/refresh.go", `Stage`},
		"FetchOutcome": {"refresh/refresh.go", `Outcome`}, "DeferReason": {"refresh/forecast.go", `Bound`},
		"ItemState": {"refresh/refresh.go", `Item\w+`}, "SkipReason": {"refresh/refresh.go", `Skip\w+`},
		"EstimateMethod": {"pricing/*.go", `Method`}, "QuoteBasis": {"pricing/*.go", `Basis`}, "QuoteReason": {"pricing/*.go", `Reason`},
		"BreakerState": {"provider/state.go", `BreakerState`}, "ProviderShape": {"provider/provider.go", `Shape`}, "QuotaPeriod": {"provider/budget.go", `Period`},
		"RequestError": {"provider/error.go", `Kind`}, "EventKind": {"event/event.go", `Kind`},
		"InspectionState": {"inventory/enrich.go", `InspectState`}, "InspectionSource": {"inventory/enrich.go", `InspectSource`},
		"InspectionCode": {"inventory/inspect/inspect.go", `Code`}, "ListingState": {"market/market.go", `ListingState`}, "TradeState": {"market/market.go", `TradeState`},
		"TransactionKind": {"wallet/wallet.go", `Kind`}, "EntryType": {"wallet/wallet.go", `Type`}, "PaymentKind": {"wallet/fee/fee.go", `Kind`},
		"FeeBasis": {"wallet/fee/fee.go", `Basis`}, "FeeRounding": {"wallet/fee/fee.go", `Rounding`},
	} {
		files, err := filepath.Glob("../" + from.file)
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, file := range files {
			part, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, part...)
		}
		found := regexp.MustCompile(`(?m)^\t(?:\w+ +)?`+from.constants+` += "([\w.]*)"`).FindAllStringSubmatch(string(text), -1)
		for _, word := range found {
			if !slices.Contains(lists[list], word[1]) {
				t.Errorf("list %s: the word %q of %s is missing", list, word[1], from.file)
			}
		}
		if len(found) < 2 {
			t.Errorf("%s: got %d constants in %s, want at least 2", list, len(found), from.file)
		}
	}
}

func TestReadTexts_ReportsMalformedEntries(t *testing.T) {
	for _, file := range []string{"Job\n", "Job: x.\nJob: x.\n", "Job: x.\n  id\n", "Job: x.\n  id {: x\n", "Job: x.\n  id 1 x\n", "Job: x.\n  id 1: x\n  id 1: x\n", "Job: x.\n  id 1: \n"} {
		if _, err := readTexts(file); err == nil {
			t.Errorf("readTexts of %q: got no error, want one", file)
		}
	}
}
