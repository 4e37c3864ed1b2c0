package fee

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay/internal/fault"
)

// faultsOf returns "pointer code" of each fault that Decode finds.
func faultsOf(t *testing.T, text string) []string {
	t.Helper()
	set, err := Decode(strings.NewReader(text))
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	if set != nil || f == nil || f.Kind != fault.Unprocessable || f.Code != "invalid_fee_rules" {
		t.Fatalf("Decode = %v, %v; want no set and a fault", set, err)
	}
	var out []string
	for _, field := range f.Fields {
		if field.Detail == "" {
			t.Errorf("%s has no reason", field.Pointer)
		}
		out = append(out, field.Pointer+" "+field.Code)
	}
	slices.Sort(out)
	return out
}

// with is a set whose one rule is right but for some members.
func with(members string) string {
	return `{"rules":[{"id":"a","priority":1,` + members + `}],"fallback":{"basisPoints":0}}`
}

func two(first, second string) string {
	return `{"rules":[{"basisPoints":1,` + first + `},{"basisPoints":1,` + second + `}],"fallback":{"basisPoints":0}}`
}

const usd = `"conditions":{"currency":"USD"},`

func TestDecode_NamesEveryFault(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                {``, []string{" malformed"}},
		"no JSON":                {`rules: []`, []string{" malformed"}},
		"cut off":                {`{"rules":[`, []string{" malformed"}},
		"two values":             {with(`"basisPoints":1`) + `{}`, []string{" malformed"}},
		"invalid UTF-8":          {"{\"rules\":[{\"id\":\"\xff\"", []string{"/rules/0/id malformed"}},
		"a member twice":         {`{"rules":[],"rules":[]}`, []string{"/rules duplicate_member"}},
		"an array":               {`[]`, []string{" wrong_type", "/fallback required", "/rules required"}},
		"null":                   {`null`, []string{" wrong_type", "/fallback required", "/rules required"}},
		"empty":                  {`{}`, []string{"/fallback required", "/rules required"}},
		"no fallback":            {`{"rules":[]}`, []string{"/fallback required"}},
		"no rules":               {`{"fallback":{"basisPoints":0}}`, []string{"/rules required"}},
		"fallback without rate":  {`{"rules":[],"fallback":{}}`, []string{"/fallback/basisPoints required"}},
		"fallback with amounts":  {`{"rules":[],"fallback":{"basisPoints":1,"fixed":30}}`, []string{"/fallback/fixed unknown_member"}},
		"fallback of null":       {`{"rules":[],"fallback":null}`, []string{"/fallback wrong_type"}},
		"rules of null":          {`{"rules":null,"fallback":{"basisPoints":1}}`, []string{"/rules wrong_type"}},
		"rule of null":           {`{"rules":[null,7],"fallback":{"basisPoints":1}}`, []string{"/rules/0 wrong_type", "/rules/1 wrong_type"}},
		"unknown members":        {`{"rules":[],"fallback":{"basisPoints":1},"Rules":[],"x/y":1}`, []string{"/Rules unknown_member", "/x~1y unknown_member"}},
		"an empty rule":          {`{"rules":[{}],"fallback":{"basisPoints":1}}`, []string{"/rules/0/basisPoints required", "/rules/0/id required", "/rules/0/priority required"}},
		"points above all":       {with(`"basisPoints":10001`), []string{"/rules/0/basisPoints out_of_range"}},
		"points below none":      {with(`"basisPoints":-1`), []string{"/rules/0/basisPoints out_of_range"}},
		"broken points":          {with(`"basisPoints":2.5`), []string{"/rules/0/basisPoints out_of_range"}},
		"points as a power":      {with(`"basisPoints":1e2`), []string{"/rules/0/basisPoints out_of_range"}},
		"points in quotes":       {with(`"basisPoints":"100"`), []string{"/rules/0/basisPoints wrong_type"}},
		"points of null":         {with(`"basisPoints":null`), []string{"/rules/0/basisPoints wrong_type"}},
		"amounts beyond all":     {with(usd + `"basisPoints":1,"fixed":9223372036854775808`), []string{"/rules/0/fixed out_of_range"}},
		"negative amounts":       {with(usd + `"basisPoints":1,"fixed":-1,"minimum":-1,"maximum":-1`), []string{"/rules/0/fixed out_of_range", "/rules/0/maximum out_of_range", "/rules/0/minimum out_of_range"}},
		"minimum above maximum":  {with(usd + `"basisPoints":1,"minimum":10,"maximum":9`), []string{"/rules/0/minimum minimum_above_maximum"}},
		"amounts of no currency": {with(`"basisPoints":1,"fixed":1,"minimum":1,"maximum":2`), []string{"/rules/0/fixed needs_one_currency", "/rules/0/maximum needs_one_currency", "/rules/0/minimum needs_one_currency"}},
		"amounts of two currencies": {
			with(`"basisPoints":1,"fixed":1,"conditions":{"currency":["USD","EUR"],"amount":{"from":5}}`),
			[]string{"/rules/0/conditions/amount needs_one_currency", "/rules/0/fixed needs_one_currency"},
		},
		"a range of no amount":   {with(`"basisPoints":1,"conditions":{"currency":"USD","amount":{"from":5,"below":5}}`), []string{"/rules/0/conditions/amount/below empty_range"}},
		"an unknown kind":        {with(`"basisPoints":1,"conditions":{"kind":"gift"}`), []string{"/rules/0/conditions/kind unknown_value"}},
		"an unknown kind of two": {with(`"basisPoints":1,"conditions":{"kind":["sale","Sale"]}`), []string{"/rules/0/conditions/kind/1 unknown_value"}},
		"unknown currencies":     {with(`"basisPoints":1,"conditions":{"currency":["XXX","usd","BTC","USD"]}`), []string{"/rules/0/conditions/currency/0 unknown_currency", "/rules/0/conditions/currency/1 unknown_currency", "/rules/0/conditions/currency/2 unknown_currency"}},
		"unknown countries":      {with(`"basisPoints":1,"conditions":{"country":["UK","EU","DEU","de"]}`), []string{"/rules/0/conditions/country/0 unknown_country", "/rules/0/conditions/country/1 unknown_country", "/rules/0/conditions/country/2 unknown_country", "/rules/0/conditions/country/3 unknown_country"}},
		"a method with a space":  {with(`"basisPoints":1,"conditions":{"paymentMethod":"credit card"}`), []string{"/rules/0/conditions/paymentMethod invalid_name"}},
		"a value twice":          {with(`"basisPoints":1,"conditions":{"country":["DE","AT","DE"]}`), []string{"/rules/0/conditions/country/2 duplicate_value"}},
		"a condition of nothing": {with(`"basisPoints":1,"conditions":{"country":[]}`), []string{"/rules/0/conditions/country out_of_range"}},
		"an unknown condition":   {with(`"basisPoints":1,"conditions":{"method":"card"}`), []string{"/rules/0/conditions/method unknown_member"}},
		"an unknown basis":       {with(`"basisPoints":1,"basis":"total"`), []string{"/rules/0/basis unknown_value"}},
		"an unknown rounding":    {with(`"basisPoints":1,"rounding":"halfDown"`), []string{"/rules/0/rounding unknown_value"}},
		"no time":                {with(`"basisPoints":1,"effectiveFrom":"tomorrow","effectiveUntil":1700000000`), []string{"/rules/0/effectiveFrom invalid_text", "/rules/0/effectiveUntil wrong_type"}},
		"until before from":      {with(`"basisPoints":1,"effectiveFrom":"2026-02-01T00:00:00Z","effectiveUntil":"2026-02-01T01:00:00+01:00"`), []string{"/rules/0/effectiveUntil empty_period"}},
		"an id with a slash":     {two(`"id":"a/b","priority":1`, `"id":"","priority":2`), []string{"/rules/0/id invalid_name", "/rules/1/id out_of_range"}},
		"the fallback's id":      {`{"rules":[{"id":"fallback","priority":1,"basisPoints":1}],"fallback":{"basisPoints":0}}`, []string{"/rules/0/id reserved_id"}},
		"an id twice":            {two(`"id":"a","priority":1`, `"id":"a","priority":2`), []string{"/rules/1/id duplicate_id"}},
		"priority out of range":  {`{"rules":[{"id":"a","priority":1000001,"basisPoints":1}],"fallback":{"basisPoints":0}}`, []string{"/rules/0/priority out_of_range"}},
		"tiers and a rate":       {with(`"basisPoints":1,"fixed":0,"tiers":[{"from":0,"basisPoints":1}]`), []string{"/rules/0/basisPoints tiers_and_rate", "/rules/0/fixed tiers_and_rate"}},
		"no tier":                {with(`"tiers":[]`), []string{"/rules/0/tiers empty_range"}},
		"tiers of null":          {with(`"tiers":[null]`), []string{"/rules/0/tiers/0 wrong_type"}},
		"an empty tier":          {with(`"tiers":[{}]`), []string{"/rules/0/tiers/0/basisPoints required", "/rules/0/tiers/0/from required"}},
		"tiers of no currency":   {with(`"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers needs_one_currency"}},
		"tiers that begin late":  {with(usd + `"tiers":[{"from":1,"below":9,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers/0/from tier_gap"}},
		"tiers with a gap":       {with(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":10,"basisPoints":1}]`), []string{"/rules/0/tiers/1/from tier_gap"}},
		"tiers that overlap":     {with(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":8,"basisPoints":1}]`), []string{"/rules/0/tiers/1/from tier_overlap"}},
		"tiers that end":         {with(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"below":10,"basisPoints":1}]`), []string{"/rules/0/tiers/1/below tier_not_open"}},
		"tiers open too early":   {with(usd + `"tiers":[{"from":0,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers/0 tier_open_too_early"}},
		"a tier of no amount":    {with(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"below":9,"basisPoints":1},{"from":9,"basisPoints":10001}]`), []string{"/rules/0/tiers/1/below empty_range", "/rules/0/tiers/2/basisPoints out_of_range"}},
		"ambiguous":              {two(`"id":"a","priority":1`, `"id":"b","priority":1,"conditions":{"kind":"sale"}`), []string{"/rules/1 ambiguous_rules"}},
		"ambiguous for a moment": {
			two(`"id":"a","priority":1,"effectiveUntil":"2026-02-01T00:00:00.000001Z"`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`),
			[]string{"/rules/1 ambiguous_rules"},
		},
		"ambiguous in one amount": {
			two(`"id":"a","priority":1,"conditions":{"currency":"USD","amount":{"from":0,"below":11}}`, `"id":"b","priority":1,"conditions":{"currency":["EUR","USD"]}`),
			[]string{"/rules/1 ambiguous_rules"},
		},
		"many at once": {
			`{"rules":[{"id":"a","priority":1,"basisPoints":10001,"conditions":{"currency":"XXX","country":"ZZ"}},{"id":"a","priority":2,"basisPoints":1,"minimum":2,"maximum":1}],"surplus":[]}`,
			[]string{
				"/fallback required", "/rules/0/basisPoints out_of_range", "/rules/0/conditions/country unknown_country", "/rules/0/conditions/currency unknown_currency",
				"/rules/1/id duplicate_id", "/rules/1/maximum needs_one_currency", "/rules/1/minimum minimum_above_maximum", "/rules/1/minimum needs_one_currency", "/surplus unknown_member",
			},
		},
	} {
		if d := cmp.Diff(c.want, faultsOf(t, c.in)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestDecode_TakesRulesOfOnePriorityThatNeverMeet(t *testing.T) {
	for name, in := range map[string]string{
		"kinds":      two(`"id":"a","priority":1,"conditions":{"kind":"sale"}`, `"id":"b","priority":1,"conditions":{"kind":["deposit","withdrawal"]}`),
		"countries":  two(`"id":"a","priority":1,"conditions":{"country":["DE","FR"]}`, `"id":"b","priority":1,"conditions":{"country":["AT","ES","IT"]}`),
		"amounts":    two(`"id":"a","priority":1,"conditions":{"currency":"USD","amount":{"below":10}}`, `"id":"b","priority":1,"conditions":{"currency":"USD","amount":{"from":10}}`),
		"periods":    two(`"id":"a","priority":1,"effectiveUntil":"2026-02-01T00:00:00Z"`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`),
		"priorities": two(`"id":"a","priority":1`, `"id":"b","priority":2`),
	} {
		if got := faultsOf(t, in); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDecode_IsBounded(t *testing.T) {
	rule := func(i int) string { return fmt.Sprintf(`{"id":"r%d","priority":%d,"basisPoints":1}`, i, i) }
	var rules []string
	for i := range MaxRules + 2 {
		rules = append(rules, rule(i))
	}
	many := func(element string, n int) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"rules":  {`{"rules":[` + strings.Join(rules, ",") + `],"fallback":{"basisPoints":0}}`, []string{"/rules too_many"}},
		"values": {with(`"basisPoints":1,"conditions":{"country":["DE",` + many(`"DE"`, MaxValues+9) + `]}`), nil},
		"tiers":  {with(usd + `"tiers":[` + many(`{"from":0,"basisPoints":1}`, MaxTiers+9) + `]`), nil},
	} {
		got := faultsOf(t, c.in)
		if c.want != nil && !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !slices.ContainsFunc(got, func(f string) bool { return strings.HasSuffix(f, " too_many") }) {
			t.Errorf("%s: %v, want too_many among them", name, got)
		}
	}
	if got := faultsOf(t, `{"rules":[`+many(`{}`, MaxRules)+`]}`); len(got) != maxFaults {
		t.Errorf("%d faults are told, want %d", len(got), maxFaults)
	}
	if got := faultsOf(t, with(`"id2":"`+strings.Repeat("x", 1<<20)+`"`)); !cmp.Equal(got, []string{" too_large"}) {
		t.Errorf("a huge text: %v", got)
	}
}

func TestDecode_ReturnsTheErrorOfItsReader(t *testing.T) {
	away := errors.New("away")
	if _, err := Decode(iotest.ErrReader(away)); !errors.Is(err, away) || fault.Of(err) != nil {
		t.Errorf("Decode = %v, want %v as it is", err, away)
	}
}

func TestCanonical_IsTheSameForWhatMeansTheSame(t *testing.T) {
	a := decode(t, `{"rules":[
		{"id":"b","priority":2,"basisPoints":1},
		{"id":"a","priority":1,"basisPoints":290,"fixed":30,"minimum":0,"conditions":{"currency":"USD","country":["FR","DE"],"kind":"sale"},"effectiveFrom":"2026-02-01T01:00:00+01:00"}
		],"fallback":{"basisPoints":0}}`)
	b := decode(t, `{"fallback":{"rounding":"halfEven","basisPoints":0,"basis":"gross"},"rules":[
		{"priority":1,"id":"a","tiers":[{"from":0,"basisPoints":290,"fixed":30}],"rounding":"halfEven","conditions":{"kind":["sale"],"country":["DE","FR"],"currency":["USD"],"amount":{}},"effectiveFrom":"2026-02-01T00:00:00Z"},
		{"id":"b","priority":2,"basisPoints":1,"conditions":{}}]}`)
	textA, digestA, errA := a.Canonical()
	textB, digestB, errB := b.Canonical()
	if errA != nil || errB != nil || string(textA) != string(textB) || digestA != digestB {
		t.Errorf("canonical forms differ:\n%s %v\n%s %v", textA, errA, textB, errB)
	}
	again := decode(t, string(textA))
	if d := cmp.Diff(b, again, cmpopts.IgnoreUnexported(Rule{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the canonical form reads as another set: %s", d)
	}
}

func TestBuiltIn_IsWhatItsDocumentReadsAs(t *testing.T) {
	text, _, err := BuiltIn().Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(BuiltIn(), decode(t, string(text)), cmpopts.IgnoreUnexported(Rule{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

// FuzzDecode holds that whatever is taken reads the same once it was written,
// and charges nobody more than he pays.
func FuzzDecode(f *testing.F) {
	f.Add(with(`"basisPoints":1`), int64(100))
	f.Add(with(usd+`"basis":"net","rounding":"up","minimum":3,"maximum":90,"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"basisPoints":10000,"fixed":5}]`), int64(9))
	f.Add(two(`"id":"a","priority":1,"conditions":{"country":["DE"],"paymentMethod":"card"}`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`), int64(1))
	f.Fuzz(func(t *testing.T, text string, amount int64) {
		set, err := Decode(strings.NewReader(text))
		if err != nil {
			if f := fault.Of(err); f == nil || len(f.Fields) == 0 {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		canonical, digest, err := set.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		again := decode(t, string(canonical))
		if _, d, _ := again.Canonical(); d != digest {
			t.Fatalf("canonical form of %s is not stable", canonical)
		}
		p := Payment{Kind: Sale, Amount: amount & (1<<63 - 1), Currency: "USD", At: noon}
		q, err := Compute(set, p)
		if err != nil || q.Fee < 0 || q.Net < 0 || q.Fee+q.Net != p.Amount {
			t.Fatalf("%+v, %v", q, err)
		}
		if e, err := Explain(again, p); err != nil || e.Quote != q {
			t.Fatalf("%+v explained, %+v computed, %v", e.Quote, q, err)
		}
	})
}

func TestReference_ItsExampleIsTakenAndEveryCodeIsThere(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/fee-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	decode(t, example)
	code, err := os.ReadFile("decode.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t\w+ += "([a-z_]+)"$`).FindAllStringSubmatch(string(code), -1)
	if len(found) < 15 {
		t.Fatalf("found %d codes only", len(found))
	}
	for _, m := range found {
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("code %s is not described", m[1])
		}
	}
}
