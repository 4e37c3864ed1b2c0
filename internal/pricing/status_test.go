package pricing

import (
	"testing"
	"time"

	"assay/internal/money"
)

func TestStatus_NamesAreTheAPIs(t *testing.T) {
	want := []string{"ok", "thin", "suspect", "disputed", "stale", "noPrice"}
	all := []Status{OK, Thin, Suspect, Disputed, Stale, NoPrice}
	for i, s := range all {
		if int(s) != i || s.String() != want[i] {
			t.Errorf("status %d is %d, %q; want %q, worse than those before", i, s, s, want[i])
		}
	}
	if Status(6).String() != "Status(6)" {
		t.Errorf("Status(6) is %s", Status(6))
	}
	if len(all) != len(statusNames) {
		t.Errorf("%d statuses, want %d", len(all), len(statusNames))
	}
}

func TestParse_MethodAndGuard(t *testing.T) {
	for _, text := range []string{"consensus", "average", "median"} {
		if m, err := ParseMethod(text); err != nil || string(m) != text {
			t.Errorf("ParseMethod(%q) = %q, %v", text, m, err)
		}
	}
	for _, text := range []string{"flag", "hold"} {
		if g, err := ParseGuard(text); err != nil || string(g) != text {
			t.Errorf("ParseGuard(%q) = %q, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "Consensus", "robust", "mean", "clamp"} {
		if m, err := ParseMethod(text); err == nil {
			t.Errorf("ParseMethod(%q) = %q", text, m)
		}
		if g, err := ParseGuard(text); err == nil {
			t.Errorf("ParseGuard(%q) = %q", text, g)
		}
	}
}

func TestNewPricer_ZeroFieldsHaveTheirDefaults(t *testing.T) {
	want := Policy{Method: Consensus, Guard: Flag, MaxAge: 24 * time.Hour, NoSalesWindow: 720 * time.Hour}
	for _, p := range []Policy{{}, {Method: "mean", Guard: "clamp"}} {
		got := NewPricer(p, NewSet(money.Scale)).policy
		if got.Method != want.Method || got.Guard != want.Guard || got.MaxAge != want.MaxAge || got.NoSalesWindow != want.NoSalesWindow {
			t.Errorf("NewPricer(%+v) uses %+v", p, got)
		}
	}
}

func TestSalesSignal_HasNames(t *testing.T) {
	for s, want := range map[SalesSignal]string{SalesUnknown: "unknown", SalesSome: "some", SalesNone: "none"} {
		if s.String() != want {
			t.Errorf("signal %d is %q, want %q", s, s, want)
		}
	}
}
