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

func TestDemoAssets_CoverEveryNameAndAreAlwaysTheSame(t *testing.T) {
	names := make([]string, 37_000)
	for i := range names {
		names[i] = fmt.Sprintf("Item %d", i)
	}
	owned, ids := map[string]int{}, map[string]bool{}
	for n := range demoUsers {
		assets := demoAssets(names, n, demoUsers)
		if len(assets) > inventory.MaxItems {
			t.Fatalf("user %d owns %d things, more than a push may hold", n, len(assets))
		}
		for _, a := range assets {
			owned[a.MarketHashName]++
			if ids[a.AssetID] {
				t.Fatalf("asset id %s twice", a.AssetID)
			}
			ids[a.AssetID] = true
		}
		if again := demoAssets(names, n, demoUsers); again[len(again)-1] != assets[len(assets)-1] {
			t.Errorf("user %d owns something else the second time", n)
		}
	}
	if len(owned) != len(names) {
		t.Errorf("%d of %d names are owned", len(owned), len(names))
	}
	if got := owned[names[0]]; got != demoUsers {
		t.Errorf("the first name is owned by %d users, want all", got)
	}
}

func TestDemo_LeavesOtherDirectoriesAlone(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "fresh", "deep")
	for range 2 { // the second time it is a demo's already
		if err := claimDemoDir(fresh); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "assay.db"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claimDemoDir(dir); exitCode(err) != exitUsage {
		t.Errorf("err %v, want a refusal", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("a refused directory holds %v", entries)
	}
}

func TestDemo_RefusesAnotherDatabase(t *testing.T) {
	f := newFakeServer(t)
	p, _, errs := program(f, "demo", "--data-dir", t.TempDir())
	p.Environ = append(p.Environ, "DATABASE_URL=sqlite:/var/lib/assay/assay.db")
	if code := p.Run(context.Background()); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	if !strings.Contains(errs.String(), "but the demo uses its own database only") {
		t.Errorf("standard error: %s", errs)
	}
}
