package api

import (
	"testing"

	"assay/internal/view"
)

// TestExport_ETagHasCurrencyAndRates compares the ETags of exports of the same prices in several forms.
func TestExport_ETagHasCurrencyAndRates(t *testing.T) {
	e := &exporter{call: &call{values: values{}}}
	of := view.Export{Change: 7, Version: 9, Currency: "USD"}
	seen := map[string]string{}
	for name, made := range map[string]string{
		"dollars":             e.etag(of, nil, ""),
		"compressed":          e.etag(of, nil, "gzip"),
		"euros":               e.etag(view.Export{Change: 7, Version: 9, Currency: "EUR"}, []byte(`[{"rate":0.9}]`), ""),
		"euros, another rate": e.etag(view.Export{Change: 7, Version: 9, Currency: "EUR"}, []byte(`[{"rate":0.8}]`), ""),
		"a confirmed price":   e.etag(view.Export{Change: 7, Version: 10, Currency: "USD"}, nil, ""),
	} {
		if other, twice := seen[made]; twice {
			t.Errorf("%s and %s have the ETag %s, want different ones", name, other, made)
		}
		seen[made] = name
	}
	if again := e.etag(of, nil, ""); seen[again] != "dollars" {
		t.Errorf("the same export: got a different ETag %s, want the same one again", again)
	}
}
