package fee_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay/internal/fault"
	"assay/internal/wallet/fee"
	"assay/internal/wallet/fee/feetest"
)

// faultsOf returns "pointer code" for each error of Decode.
func faultsOf(t *testing.T, text string) []string {
	t.Helper()
	set, err := fee.Decode(strings.NewReader(text))
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
			t.Errorf("fault at %s: got no detail, want a reason", field.Pointer)
		}
		out = append(out, field.Pointer+" "+field.Code)
	}
	slices.Sort(out)
	return out
}

func decode(tb testing.TB, text string) *fee.Set {
	tb.Helper()
	set, err := fee.Decode(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func TestDecode_ReportsEveryError(t *testing.T) {
	for name, c := range feetest.Broken() {
		if d := cmp.Diff(c.Faults, faultsOf(t, c.Text)); d != "" {
			t.Errorf("faults of %s (-want +got):\n%s", name, d)
		}
	}
}

func TestDecode_AcceptsEqualPrioritiesWithoutOverlap(t *testing.T) {
	for name, in := range map[string]string{
		"kinds":      feetest.TwoRules(`"id":"a","priority":1,"conditions":{"kind":"sale"}`, `"id":"b","priority":1,"conditions":{"kind":["deposit","withdrawal"]}`),
		"countries":  feetest.TwoRules(`"id":"a","priority":1,"conditions":{"country":["DE","FR"]}`, `"id":"b","priority":1,"conditions":{"country":["AT","ES","IT"]}`),
		"amounts":    feetest.TwoRules(`"id":"a","priority":1,"conditions":{"currency":"USD","amount":{"below":10}}`, `"id":"b","priority":1,"conditions":{"currency":"USD","amount":{"from":10}}`),
		"periods":    feetest.TwoRules(`"id":"a","priority":1,"effectiveUntil":"2026-02-01T00:00:00Z"`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`),
		"priorities": feetest.TwoRules(`"id":"a","priority":1`, `"id":"b","priority":2`),
	} {
		if got := faultsOf(t, in); got != nil {
			t.Errorf("%s: got faults %v, want none", name, got)
		}
	}
}

func TestDecode_EnforcesLimits(t *testing.T) {
	rule := func(i int) string { return fmt.Sprintf(`{"id":"r%d","priority":%d,"basisPoints":1}`, i, i) }
	var rules []string
	for i := range fee.MaxRules + 2 {
		rules = append(rules, rule(i))
	}
	many := func(element string, n int) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"rules":  {`{"rules":[` + strings.Join(rules, ",") + `],"fallback":{"basisPoints":0}}`, []string{"/rules too_many"}},
		"values": {feetest.OneRule(`"basisPoints":1,"conditions":{"country":["DE",` + many(`"DE"`, fee.MaxValues+9) + `]}`), nil},
		"tiers":  {feetest.OneRule(`"conditions":{"currency":"USD"},"tiers":[` + many(`{"from":0,"basisPoints":1}`, fee.MaxTiers+9) + `]`), nil},
	} {
		got := faultsOf(t, c.in)
		if c.want != nil && !cmp.Equal(got, c.want) {
			t.Errorf("%s: got faults %v, want %v", name, got, c.want)
		}
		if !slices.ContainsFunc(got, func(f string) bool { return strings.HasSuffix(f, " too_many") }) {
			t.Errorf("%s: got faults %v, want too_many among them", name, got)
		}
	}
	if got := faultsOf(t, `{"rules":[`+many(`{}`, fee.MaxRules)+`]}`); len(got) != fee.MaxFaults {
		t.Errorf("got %d errors, want %d", len(got), fee.MaxFaults)
	}
	if got := faultsOf(t, feetest.OneRule(`"id2":"`+strings.Repeat("x", 1<<20)+`"`)); !cmp.Equal(got, []string{" too_large"}) {
		t.Errorf("text over the limit: got faults %v, want too_large", got)
	}
}

func TestDecode_ReturnsReadErrors(t *testing.T) {
	broken := errors.New("read failed")
	if _, err := fee.Decode(iotest.ErrReader(broken)); !errors.Is(err, broken) || fault.Of(err) != nil {
		t.Errorf("Decode: got error %v, want %v", err, broken)
	}
}

func TestCanonical_IsEqualForEquivalentDocuments(t *testing.T) {
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
		t.Errorf("canonical forms of equal rules: got\n%s (error %v) and\n%s (error %v), want the same text for both", textA, errA, textB, errB)
	}
	again := decode(t, string(textA))
	if d := cmp.Diff(b, again, cmpopts.IgnoreUnexported(fee.Rule{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("rules decoded from the canonical form (-want +got):\n%s", d)
	}
}

func TestBuiltIn_RoundTrip(t *testing.T) {
	text, _, err := fee.BuiltIn().Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fee.BuiltIn(), decode(t, string(text)), cmpopts.IgnoreUnexported(fee.Rule{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("built-in rules (-want +got):\n%s", d)
	}
}

// FuzzDecode checks that a valid set decodes to the same set after encoding, and that no
// fee exceeds the amount.
func FuzzDecode(f *testing.F) {
	f.Add(feetest.OneRule(`"basisPoints":1`), int64(100))
	f.Add(feetest.OneRule(`"conditions":{"currency":"USD"},"basis":"net","rounding":"up","minimum":3,"maximum":90,"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"basisPoints":10000,"fixed":5}]`), int64(9))
	f.Add(feetest.TwoRules(`"id":"a","priority":1,"conditions":{"country":["DE"],"paymentMethod":"card"}`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`), int64(1))
	f.Fuzz(func(t *testing.T, text string, amount int64) {
		set, err := fee.Decode(strings.NewReader(text))
		if err != nil {
			if f := fault.Of(err); f == nil || len(f.Fields) == 0 {
				t.Fatalf("got error %v, want a fault with fields", err)
			}
			return
		}
		canonical, digest, err := set.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		again := decode(t, string(canonical))
		if _, d, _ := again.Canonical(); d != digest {
			t.Fatalf("digest of the canonical form %s after decoding and encoding: got %x, want %x", canonical, d, digest)
		}
		p := fee.Payment{Kind: fee.Sale, Amount: amount & (1<<63 - 1), Currency: "USD", At: time.Unix(1_772_366_400, 0)}
		q, err := fee.Compute(set, p)
		if err != nil || q.Fee < 0 || q.Net < 0 || q.Fee+q.Net != p.Amount {
			t.Fatalf("got quote %+v, error %v, want a fee and a net amount that add up to the amount", q, err)
		}
		if e, err := fee.Explain(again, p); err != nil || e.Quote != q {
			t.Fatalf("Explain: got %+v, want the computed %+v; error %v", e.Quote, q, err)
		}
	})
}

func TestReference_ExampleIsValidAndCodesAreComplete(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/fee-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := os.ReadFile("../../../docs/contribute/fee-samples.md")
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
		t.Fatalf("found %d codes, want at least 15", len(found))
	}
	for _, m := range found {
		if !strings.Contains(string(codes), "`"+m[1]+"`") {
			t.Errorf("fee-samples.md: got no description of the code %s, want one", m[1])
		}
	}
}
