package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/randtest"
)

// TestBackup_KilledBackupLeavesNoFile kills backups at random times while a server runs. The
// final file must not exist afterwards. The next backup with the same name must succeed
// immediately, although a process of the killed backup may still be writing.
func TestBackup_KilledBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		r := randtest.New(t)
		const items = 20_000
		s := on.newServer(t)
		s.start()
		all := make([]asset, items)
		for i := range all {
			all[i] = asset{AssetID: fmt.Sprint(i), MarketHashName: fmt.Sprintf("Item %d with a name of some length", i)}
		}
		s.push("u", 730, all)
		dir := t.TempDir()
		began := time.Now()
		s.command(0, "backup", filepath.Join(dir, "whole"))
		takes := time.Since(began)

		file := filepath.Join(dir, "killed")
		killed := 0
		for range randtest.Count(10, 200) {
			cmd := exec.Command(binary, "backup", file)
			cmd.Env = s.env
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(r.Int64N(int64(takes))))
			_ = cmd.Process.Kill()
			err := cmd.Wait()
			if _, missing := os.Lstat(file); err != nil && errors.Is(missing, fs.ErrNotExist) {
				killed++
				continue
			}
			s.command(0, "backup", "--verify", file) // the backup finished before the kill, so the file must be complete
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("a backup takes %v; %d backups were killed", takes, killed)
		s.command(0, "backup", file)
		s.command(0, "backup", "--verify", file)

		restored := newServer(t)
		if on == onPostgres {
			restored = newServerOn(t, pgtest.Shared(t).NewDatabase(t))
		}
		restored.command(0, "restore", file)
		restored.start()
		var inventory struct{ Rows int }
		restored.get("/api/inventory/u", &inventory)
		if inventory.Rows != items {
			t.Errorf("got %d restored rows, want %d", inventory.Rows, items)
		}
	})
}
