package fee

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/randtest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// single returns a set with one rule that matches everything.
func single(r Rule) *Set {
	r.ID, r.Currencies = "r", []money.Currency{"USD"}
	return &Set{Rules: []Rule{r}, Fallback: newFallback(0)}
}

func mustFee(t *testing.T, s *Set, amount int64) int64 {
	t.Helper()
	q, err := Compute(s, Payment{Kind: Sale, Amount: amount, Currency: "USD", At: noon})
	if err != nil || q.Net != amount-q.Fee || q.Rule != "r" {
		t.Fatalf("Compute(%d) = %+v, %v, want rule r and a net amount without the fee", amount, q, err)
	}
	return q.Fee
}

func TestCompute_MatchesFeesTable(t *testing.T) {
	text, err := os.ReadFile("testdata/fees.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for i, line := range strings.Split(string(text), "\n") {
		row, why, _ := strings.Cut(line, "#")
		f := strings.Fields(row)
		if len(f) == 0 {
			continue
		}
		rows++
		r := Rule{Basis: Basis(f[0]), Tiers: parseTiers(t, f[1]), Rounding: Rounding(f[4])}
		if f[2] != "-" {
			r.Minimum = parseInt(t, f[2])
		}
		if f[3] != "-" {
			most := parseInt(t, f[3])
			r.Maximum = &most
		}
		if got, want := mustFee(t, single(r), parseInt(t, f[5])), parseInt(t, f[6]); got != want {
			t.Errorf("fees.txt:%d: %s: got the fee %d, want %d:%s", i+1, row, got, want, why)
		}
	}
	if rows < 200 {
		t.Errorf("compared %d fees, want at least 200", rows)
	}
}

// TestCompute_MatchesPaymentsTable checks which of many rules applies.
func TestCompute_MatchesPaymentsTable(t *testing.T) {
	rules, err := os.ReadFile("testdata/payments.json")
	if err != nil {
		t.Fatal(err)
	}
	set := decode(t, string(rules))
	text, err := os.ReadFile("testdata/payments.txt")
	if err != nil {
		t.Fatal(err)
	}
	applied := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		row, why, _ := strings.Cut(line, "#")
		f := strings.Fields(strings.ReplaceAll(row, " -", " ?"))
		if len(f) == 0 {
			continue
		}
		known := func(text string) string { return strings.TrimPrefix(text, "?") }
		p := Payment{Kind: Kind(f[0]), Amount: parseInt(t, f[1]), Currency: money.Currency(f[2]), Method: known(f[3]), Country: known(f[4]), At: noon}
		if f[5] != "?" {
			if p.At, err = time.Parse(time.RFC3339Nano, f[5]); err != nil {
				t.Fatal(err)
			}
		}
		applied[f[6]]++
		want := Quote{Rule: f[6], Fee: parseInt(t, f[7]), Net: p.Amount - parseInt(t, f[7])}
		if got, err := Compute(set, p); err != nil || got != want {
			t.Errorf("payments.txt:%d: %s: got %+v, error %v, want %+v:%s", i+1, row, got, err, want, why)
		}
	}
	if len(applied) != len(set.Rules)+1 {
		t.Errorf("applied rules: got %v, want all %d rules and the fallback", applied, len(set.Rules))
	}
}

func parseTiers(t *testing.T, text string) []Tier {
	t.Helper()
	var tiers []Tier
	for part := range strings.SplitSeq(text, ",") {
		from, rate, _ := strings.Cut(part, ":")
		points, fixed, _ := strings.Cut(rate, "+")
		tiers = append(tiers, Tier{Span{From: parseInt(t, from)}, parseInt(t, points), parseInt(t, fixed)})
	}
	for i := range tiers[1:] {
		tiers[i].Below = tiers[i+1].From
	}
	return tiers
}

func parseInt(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// exactFee computes the exact fee with rational numbers. For a fee on the net amount it solves
// fee = rate * (amount - fee) + fixed.
func exactFee(r *Rule, amount int64) int64 {
	tier := r.Tiers[0]
	for _, t := range r.Tiers {
		if amount >= t.From {
			tier = t
		}
	}
	rate := big.NewRat(tier.BasisPoints, 10_000)
	exact := new(big.Rat).Mul(rate, new(big.Rat).SetInt64(amount))
	exact.Add(exact, new(big.Rat).SetInt64(tier.Fixed))
	if r.Basis == Net {
		exact.Quo(exact, rate.Add(rate, big.NewRat(1, 1)))
	}
	n, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1).Cmp(exact.Denom()) // compare the fraction with one half
	up := false
	switch r.Rounding {
	case Up:
		up = rest.Sign() > 0
	case HalfUp:
		up = twice >= 0
	case HalfEven:
		up = twice > 0 || twice == 0 && n.Bit(0) == 1
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	if least := big.NewInt(r.Minimum); n.Cmp(least) < 0 {
		n = least
	}
	if r.Maximum != nil && n.Cmp(big.NewInt(*r.Maximum)) > 0 {
		n.SetInt64(*r.Maximum)
	}
	if n.Cmp(big.NewInt(amount)) > 0 {
		n.SetInt64(amount)
	}
	return n.Int64()
}

func randomAmount(rng *rand.Rand) int64 { return rng.Int64() >> rng.IntN(63) }

func randomRule(rng *rand.Rand) Rule {
	pick := func(options ...Rounding) Rounding { return options[rng.IntN(len(options))] }
	r := Rule{Basis: Gross, Rounding: pick(HalfEven, HalfUp, Up, Down)}
	if rng.IntN(2) == 0 {
		r.Basis = Net
	}
	if rng.IntN(3) == 0 {
		r.Minimum = randomAmount(rng)
	}
	if rng.IntN(3) == 0 {
		most := r.Minimum + (math.MaxInt64-r.Minimum)>>rng.IntN(63)
		r.Maximum = &most
	}
	from := int64(0)
	for range 1 + rng.IntN(4) {
		t := Tier{Span: Span{From: from}, BasisPoints: rng.Int64N(10_001)}
		if rng.IntN(2) == 0 {
			t.Fixed = randomAmount(rng)
		}
		if n := len(r.Tiers); n > 0 {
			r.Tiers[n-1].Below = from
		}
		r.Tiers = append(r.Tiers, t)
		next := from + 1 + (math.MaxInt64-1-from)>>(1+rng.IntN(62))
		if next <= from {
			break
		}
		from = next
	}
	return r
}

func TestCompute_IsExactForAllAmounts(t *testing.T) {
	rng := randtest.New(t)
	for range randtest.Count(50_000, 5_000_000) {
		r := randomRule(rng)
		amount := randomAmount(rng)
		if tier := r.Tiers[rng.IntN(len(r.Tiers))]; rng.IntN(4) == 0 {
			amount = max(0, tier.From-rng.Int64N(2)) // an amount at the limit of the tier
		}
		set := single(r)
		got, want := mustFee(t, set, amount), exactFee(&r, amount)
		if got != want || got < 0 || got > amount {
			t.Fatalf("fee of %d with rule %+v: got %d, want %d", amount, r, got, want)
		}
	}
}

func TestCompute_DistinguishesNetAndGross(t *testing.T) {
	r := Rule{Basis: Net, Rounding: HalfEven, Tiers: []Tier{{BasisPoints: 1500}}}
	if got := mustFee(t, single(r), 10_000); got != 1304 {
		t.Errorf("15 %% of the net part of 100.00: got %d cents, want 1304", got)
	}
	r.Basis = Gross
	if got := mustFee(t, single(r), 10_000); got != 1500 {
		t.Errorf("15 %% of 100.00 gross: got %d cents, want 1500", got)
	}
}

func TestCompute_AppliesTheFirstMatchingRule(t *testing.T) {
	set := decode(t, `{"rules":[
		{"id":"late","priority":30,"basisPoints":300},
		{"id":"eu-card","priority":10,"conditions":{"kind":"sale","paymentMethod":["card","paypal"],"country":["DE","AT"]},"basisPoints":100},
		{"id":"big","priority":20,"conditions":{"currency":"EUR","amount":{"from":1000,"below":2000}},"basisPoints":200},
		{"id":"was","priority":5,"effectiveUntil":"2026-11-21T12:00:00Z","basisPoints":1},
		{"id":"will","priority":6,"effectiveFrom":"2026-11-21T12:00:01Z","basisPoints":2}
		],"fallback":{"basisPoints":400}}`)
	german := Payment{Kind: Sale, Amount: 1500, Currency: "EUR", Method: "card", Country: "DE", At: noon}
	change := func(f func(*Payment)) Payment { p := german; f(&p); return p }
	for name, c := range map[string]struct {
		p    Payment
		want string
	}{
		"all conditions":                    {german, "eu-card"},
		"another kind":                      {change(func(p *Payment) { p.Kind = Deposit }), "big"},
		"another country":                   {change(func(p *Payment) { p.Country = "FR" }), "big"},
		"an unknown country":                {change(func(p *Payment) { p.Country = "" }), "big"},
		"below the range":                   {change(func(p *Payment) { p.Country, p.Amount = "", 999 }), "late"},
		"first amount of the range":         {change(func(p *Payment) { p.Country, p.Amount = "", 1000 }), "big"},
		"end of the range":                  {change(func(p *Payment) { p.Country, p.Amount = "", 2000 }), "late"},
		"just before the end of the period": {change(func(p *Payment) { p.At = noon.Add(-time.Microsecond) }), "was"},
		"start of the period":               {change(func(p *Payment) { p.At = noon.Add(time.Second) }), "will"},
		"currency without rules":            {change(func(p *Payment) { p.Currency, p.Method = "USD", "" }), "late"},
	} {
		if q, err := Compute(set, c.p); err != nil || q.Rule != c.want {
			t.Errorf("%s: got rule %s, error %v, want rule %s", name, q.Rule, err, c.want)
		}
	}
	none := &Set{Fallback: set.Fallback}
	if q, err := Compute(none, german); err != nil || q.Rule != FallbackID || q.Fee != 60 {
		t.Errorf("without rules: got %+v, error %v, want 4 %% by the fallback", q, err)
	}
}

func TestCompute_RejectsInvalidPayments(t *testing.T) {
	_, err := Compute(BuiltIn(), Payment{Kind: "gift", Amount: -1, Currency: "XAU"})
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Unprocessable || len(f.Fields) != 3 {
		t.Errorf("Compute = %v, want three faults", err)
	}
}

func TestExplain_DescribesRuleAndSteps(t *testing.T) {
	set := decode(t, `{"rules":[
		{"id":"card","priority":1,"conditions":{"paymentMethod":"card"},"basisPoints":1},
		{"id":"usd","priority":2,"conditions":{"currency":"USD","kind":"sale"},"minimum":50,"maximum":90,"basis":"net","rounding":"up",
		 "tiers":[{"from":0,"below":500,"basisPoints":1000},{"from":500,"basisPoints":1500,"fixed":5}]},
		{"id":"never","priority":3,"basisPoints":9}],"fallback":{"basisPoints":0}}`)
	set.Version = 7
	e, err := Explain(set, Payment{Kind: Sale, Amount: 1000, Currency: "USD", At: noon})
	if err != nil {
		t.Fatal(err)
	}
	want := Explanation{
		Quote:      Quote{Version: 7, Rule: "usd", Fee: 90, Net: 910},
		NotMatched: []Miss{{"card", "payment method is missing; the rule requires card"}},
		Steps: []string{
			"rule usd applies: priority 2, kind sale, currency USD",
			"10.00 USD is in the tier of amounts from 500",
			"15 % of the net part of 10.00 USD plus 0.05 USD fixed = 134 and 9000/11500 minor units",
			"rounded up: 1.35 USD",
			"lowered to the maximum: 0.90 USD",
			"the fee is 0.90 USD; the net amount is 9.10 USD",
		},
	}
	if d := cmp.Diff(want, e); d != "" {
		t.Errorf("explanation (-want +got):\n%s", d)
	}
}

func TestExplain_LimitsItsOutput(t *testing.T) {
	var rules []string
	for i := range MaxRules {
		rules = append(rules, fmt.Sprintf(`{"id":"r%d","priority":%d,"conditions":{"country":["DE","AT","FR","IT","ES","PL","PT"]},"basisPoints":1}`, i, i))
	}
	set := decode(t, `{"rules":[`+strings.Join(rules, ",")+`],"fallback":{"basisPoints":0}}`)
	e, err := Explain(set, Payment{Kind: Sale, Amount: 1000, Currency: "USD", At: noon})
	if err != nil || len(e.NotMatched) != 50 || e.MoreMisses != MaxRules-50 || e.Rule != FallbackID {
		t.Errorf("Explain: got %d rules and %d more, rule %s, error %v, want 50 rules, %d more and the fallback", len(e.NotMatched), e.MoreMisses, e.Rule, err, MaxRules-50)
	}
	if got := e.NotMatched[0].Reason; got != "country is missing; the rule requires one of AT, DE, ES, FR, IT or 2 others" {
		t.Errorf("reason of the first rule: got %q, want three countries and the number of the others", got)
	}
}

func decode(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkCompute(b *testing.B) {
	set := BuiltIn()
	p := Payment{Kind: Sale, Amount: 1999, Currency: "USD", At: noon}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compute(set, p); err != nil {
			b.Fatal(err)
		}
	}
}
