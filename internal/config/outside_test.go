package config

import "testing"

func TestOutsideSecret_NeedsNoCredentials(t *testing.T) {
	c, err := Load(Options{Environ: []string{"DATA_DIR=" + t.TempDir(), "ACME_API_KEY=abc", "ADMIN_API_TOKEN=0123456789abcdef0123456789abcdef"}})
	if err != nil {
		t.Fatal(err)
	}
	if value, err := c.OutsideSecret("ACME_API_KEY"); value != "abc" || err != nil {
		t.Errorf("got secret %q, error %v; want abc", value, err)
	}
	if _, err := c.OutsideSecret("ADMIN_API_TOKEN"); err == nil {
		t.Error("OutsideSecret of Assay's own credential: got no error, want one")
	}
}
