package pricing

import (
	"testing"
	"time"

	"assay/internal/money"
)

func TestStatus_HasTheNamesOfTheAPI(t *testing.T) {
	want := []string{"ok", "thin", "suspect", "disputed", "stale", "noPrice"}
	all := []Status{OK, Thin, Suspect, Disputed, Stale, NoPrice}
	for i, s := range all {
		if int(s) != i || s.String() != want[i] {
			t.Errorf("status %d: got the value %d and the name %q, want %d and %q", i, s, s, i, want[i])
		}
	}
	if Status(6).String() != "Status(6)" {
		t.Errorf("name of status 6: got %q, want %q", Status(6), "Status(6)")
	}
	if len(all) != len(statusNames) {
		t.Errorf("got %d status names, want %d", len(statusNames), len(all))
	}
}

func TestParseMethodAndParseGuard_AcceptOnlyKnownValues(t *testing.T) {
	for _, text := range []string{"consensus", "average", "median"} {
		if m, err := ParseMethod(text); err != nil || string(m) != text {
			t.Errorf("ParseMethod(%q) = %q, %v, want %q", text, m, err, text)
		}
	}
	for _, text := range []string{"flag", "hold"} {
		if g, err := ParseGuard(text); err != nil || string(g) != text {
			t.Errorf("ParseGuard(%q) = %q, %v, want %q", text, g, err, text)
		}
	}
	for _, text := range []string{"", "Consensus", "robust", "mean", "clamp"} {
		if m, err := ParseMethod(text); err == nil {
			t.Errorf("ParseMethod(%q) = %q, want an error", text, m)
		}
		if g, err := ParseGuard(text); err == nil {
			t.Errorf("ParseGuard(%q) = %q, want an error", text, g)
		}
	}
}

func TestNewPricer_SetsDefaults(t *testing.T) {
	want := Policy{Method: Consensus, Guard: Flag, MaxAge: 24 * time.Hour, NoSalesWindow: 720 * time.Hour}
	for _, p := range []Policy{{}, {Method: "mean", Guard: "clamp"}} {
		got := NewPricer(p, NewSet(money.Scale)).policy
		if got.Method != want.Method || got.Guard != want.Guard || got.MaxAge != want.MaxAge || got.NoSalesWindow != want.NoSalesWindow {
			t.Errorf("NewPricer(%+v): got the policy %+v, want %+v", p, got, want)
		}
	}
}

func TestSalesSignal_HasNames(t *testing.T) {
	for s, want := range map[SalesSignal]string{SalesUnknown: "unknown", SalesSome: "some", SalesNone: "none"} {
		if s.String() != want {
			t.Errorf("signal %d: got %q, want %q", s, s, want)
		}
	}
}
