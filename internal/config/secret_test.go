package config

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const canary = "canary-7f3a91c0"

func TestSecret_IsNeverPrinted(t *testing.T) {
	type holder struct {
		Open   Secret
		hidden Secret
		list   []Secret
		Map    map[string]Secret
	}
	s := NewSecret(canary)
	h := holder{Open: s, hidden: s, list: []Secret{s}, Map: map[string]Secret{"a": s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%c", "%U", "%08.3f"} {
		for _, value := range []any{s, &s, []Secret{s}, h, &h, map[string]any{"k": h}} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	for _, handler := range []slog.Handler{
		slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil),
	} {
		slog.New(handler).Info("canary hunt", "secret", s, "holder", h, "pointer", &h, "error", fmt.Errorf("with %v", s))
	}
	if err := json.NewEncoder(&out).Encode(h); err != nil {
		t.Error(err)
	}
	if err := xml.NewEncoder(&out).Encode(h.Open); err != nil {
		t.Error(err)
	}
	text := out.String()
	if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || strings.Contains(text, fmt.Sprintf("%X", canary)) {
		t.Errorf("got output with the secret, want it redacted:\n%s", text)
	}
	if !strings.Contains(text, redacted) {
		t.Errorf("got output without %s, want it in place of the secret", redacted)
	}
}

func TestSecret_ZeroValueIsEmpty(t *testing.T) {
	if s := NewSecret(""); !s.IsZero() || s.Reveal() != "" || s.String() != "" {
		t.Errorf("got secret %q, want an empty one", s.String())
	}
}

func TestConfig_ShowsNoSecret(t *testing.T) {
	c := load(t, options(
		t, "ADMIN_API_TOKEN="+canary+"-1", "PLATFORM_API_TOKEN="+canary+"-2", "MARKET_PRICE_SYNC_SECRET="+canary+"-3,"+canary+"-4",
		"SIM_API_KEY="+canary, "WALLET_LEDGER_KEY=k7:"+strings.Repeat("ab", 32),
	))
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v\n", c.Effective(), c.Warnings)
	fmt.Fprintf(&out, "%+v %#v\n", c.Provider, c.LedgerKeys)
	if err := json.NewEncoder(&out).Encode(c.Effective()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, canary) || strings.Contains(text, "abab") {
		t.Errorf("got output with a secret, want all redacted:\n%s", text)
	}
	for _, s := range c.Effective() {
		if s.Name == "MARKET_PRICE_SYNC_SECRET" && s.Value != "[redacted] (2)" {
			t.Errorf("got the displayed value %q, want [redacted] (2)", s.Value)
		}
	}
}
