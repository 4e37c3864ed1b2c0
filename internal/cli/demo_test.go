package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/inventory"
)

func TestDemoAssets_CoverAllNamesDeterministically(t *testing.T) {
	names := make([]string, 37_000)
	for i := range names {
		names[i] = fmt.Sprintf("Item %d", i)
	}
	owned, ids := map[string]int{}, map[string]bool{}
	for n := range demoUsers {
		assets := demoAssets(names, n, demoUsers)
		if len(assets) > inventory.MaxItems {
			t.Fatalf("user %d: got %d assets, want at most the %d of a push", n, len(assets), inventory.MaxItems)
		}
		for _, a := range assets {
			owned[a.MarketHashName]++
			if ids[a.AssetID] {
				t.Fatalf("got the asset ID %s twice, want unique IDs", a.AssetID)
			}
			ids[a.AssetID] = true
		}
		if again := demoAssets(names, n, demoUsers); again[len(again)-1] != assets[len(assets)-1] {
			t.Errorf("user %d: a second call returned other assets, want the same", n)
		}
	}
	if len(owned) != len(names) {
		t.Errorf("got %d of %d names, want all", len(owned), len(names))
	}
	if got := owned[names[0]]; got != demoUsers {
		t.Errorf("got %d owners of the first name, want all users", got)
	}
}

func TestDemo_RejectsOtherDirectories(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "fresh", "deep")
	for range 2 { // the second call finds the marker file of the first
		if err := claimDemoDir(fresh); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "assay.db"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claimDemoDir(dir); exitCode(err) != exitUsage {
		t.Errorf("got error %v, want a usage error", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("rejected directory: got files %v, want no change", entries)
	}
}

func TestDemo_RejectsOtherDatabase(t *testing.T) {
	f := newFakeServer(t)
	p, _, errs := program(f, "demo", "--data-dir", t.TempDir())
	p.Environ = append(p.Environ, "DATABASE_URL=sqlite:/var/lib/assay/assay.db")
	if code := p.Run(context.Background()); code != exitUsage {
		t.Errorf("got exit code %d, want %d", code, exitUsage)
	}
	if !strings.Contains(errs.String(), "but the demo uses its own database only") {
		t.Errorf("got standard error %s, want one that states that the demo uses only its own database", errs)
	}
}
