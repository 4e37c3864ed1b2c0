package kit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemdAnalyze runs systemd-analyze. Debian's package systemd has it.
func systemdAnalyze(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("systemd-analyze is not installed: it comes with Debian's package systemd")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Unknown") {
		t.Errorf("systemd-analyze %v: got error %v, want none\n%s", args, err, out)
	}
}

// TestUnits_AreValidAndHardened verifies copies of the units. The copies start programs that exist on
// every machine. systemd rates the exposure of a unit from 0 to 100; at most 20 is allowed here.
func TestUnits_AreValidAndHardened(t *testing.T) {
	dir := t.TempDir()
	names := []string{"assay.service", "assay-backup.service", "assay-backup.timer"}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, "deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.ReplaceAll(string(text), "ExecStart=/usr/bin/assay", "ExecStart=/bin/true")
		unit = strings.ReplaceAll(unit, "Documentation=man:assay(1)\n", "")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		systemdAnalyze(t, "verify", "--man=no", filepath.Join(dir, name))
		if strings.HasSuffix(name, ".service") {
			systemdAnalyze(t, "security", "--offline=true", "--threshold=20", filepath.Join(dir, name))
		}
	}
}

func TestConfiguration_OfThePackageNamesSettings(t *testing.T) {
	text, err := os.ReadFile(root + "/deploy/systemd/assay.conf")
	if err != nil {
		t.Fatal(err)
	}
	known, found := settings(t), 0
	for line := range strings.Lines(string(text)) {
		name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), "=")
		if !ok || strings.Contains(name, " ") {
			continue
		}
		found++
		if !known[name] {
			t.Errorf("%s is not a setting of Assay", name)
		}
	}
	if found < 4 {
		t.Errorf("found %d settings, want at least 4", found)
	}
}
