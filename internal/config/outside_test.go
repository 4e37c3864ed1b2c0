package config

import "testing"

func TestOutsideSecret_NeedsNoCredentialsOfItsOwn(t *testing.T) {
	c, err := Load(Options{Environ: []string{"DATA_DIR=" + t.TempDir(), "ACME_API_KEY=abc", "ADMIN_API_TOKEN=0123456789abcdef0123456789abcdef"}})
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := c.OutsideSecret("ACME_API_KEY"); value != "abc" || !ok {
		t.Errorf("got %q, %v", value, ok)
	}
	if _, ok := c.OutsideSecret("ADMIN_API_TOKEN"); ok {
		t.Error("one of our own credentials was given out")
	}
}
