package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/randtest"
)

func TestDisk_FullFailsHealthAndRunResumes(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 32)
	d := newOnDisk(t, 2_000, "DATABASE_URL=sqlite:"+filepath.Join(disk, "assay.db"))
	filler := fill(t, disk)
	id := d.refresh()
	d.failsLoudly("database or disk is full")
	d.reads()
	_, err := d.tryPush("late", 730, newAssets(2_000))
	if err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("push while the disk is full: got %v, want 503", err)
	}
	d.staysLoud()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	d.recovers(id, randtest.Long())
}

// TestDisk_FullPostgreSQLResumes keeps the database in a tablespace on a small disk.
func TestDisk_FullPostgreSQLResumes(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64)
	pg := pgtest.Shared(t)
	d := newOnDiskOf(t, 2_000, func(env ...string) *server { return newServerOn(t, pg.NewDatabaseIn(t, disk), env...) })
	filler := fill(t, disk)
	fillUp(t, filler)
	_, err := d.tryPush("late", 730, newAssets(20_000))
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "database_unavailable") {
		t.Errorf("push while the disk is full: got %v, want 503", err)
	}
	d.failsLoudly("No space left on device")
	id, err := d.tryRefresh()
	if err != nil && !strings.Contains(err.Error(), "503") {
		t.Errorf("refresh while the disk is full: got %v, want 503", err)
	}
	d.reads()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		d.await("a refresh", func() bool { id, err = d.tryRefresh(); return err == nil })
	}
	d.recovers(id, false)
}

func TestDisk_FailingSystemCallsFailHealthAndRunResumes(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		"pwrite64:error=EIO", "pwrite64:error=EROFS", "pwrite64:error=ENOSPC", "fsync,fdatasync:error=EIO", "pwrite64,fsync,fdatasync:error=EIO:when=1+3",
	} {
		t.Run(rule, func(t *testing.T) {
			d := newOnDisk(t, 500)
			restore := tamper(t, d.cmd.Process.Pid, rule)
			id, err := d.tryRefresh()
			for range 20 { // some calls succeed, because failures are intermittent
				if err == nil {
					break
				}
				id, err = d.tryRefresh()
			}
			d.failsLoudly("disk I/O error", "database or disk is full")
			d.reads()
			restore()
			if id == "" {
				id = d.startedOr(d.tryRefresh())
			}
			d.recovers(id, false)
		})
	}
}

func TestDisk_RejectsMissingOrReplacedFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		running bool
		harm    func(t *testing.T, path string)
		reports string // while running, or at the next start
	}{
		{"deleted while stopped", false, remove, "missing"},
		{"deleted while running", true, remove, "deleted"},
		{"emptied while stopped", false, empty, "missing"},
		{"replaced while stopped", false, replace, "replaced"},
		{"replaced while running", true, replace, "replaced"},
		{"invalid file while stopped", false, rubbish, "not a database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newOnDisk(t, 200)
			path := filepath.Join(d.dir, "assay.db")
			if !c.running {
				if _, err := d.stop(); err != nil {
					t.Fatal(err)
				}
			}
			c.harm(t, path)
			if c.running {
				if _, err := d.tryRefresh(); err == nil {
					t.Error("got a started run without a database file, want an error")
				}
				d.failsLoudly(c.reports)
				d.kill()
			}
			if c.reports == "deleted" {
				c.reports = "missing"
			}
			d.refusesToStart(c.reports)
			if info, err := os.Stat(path); c.name[:7] == "deleted" && err == nil {
				t.Errorf("got a new database of %d bytes, want none", info.Size())
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func empty(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

func rubbish(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace replaces a database with another valid database.
func replace(t *testing.T, path string) {
	t.Helper()
	other := newServer(t)
	other.start()
	if _, err := other.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other.dir, "assay.db"), path); err != nil {
		t.Fatal(err)
	}
}

// refusesToStart checks that a start fails soon with the given reason.
func (s *server) refusesToStart(reports string) {
	s.t.Helper()
	before := len(s.log.String())
	s.spawn()
	select {
	case err := <-s.done:
		s.cmd = nil
		if text := s.log.String()[before:]; err == nil || !strings.Contains(text, reports) {
			s.t.Errorf("start: got error %v, output %q, want %q", err, text, reports)
		}
	case <-time.After(patience):
		s.t.Error("got a running server, want a failed start")
		s.kill()
	}
}

// TestDisk_StartServesReadsWithoutWritableDisk starts on a full disk and on a read-only disk,
// both after a graceful stop and after a kill.
func TestDisk_StartServesReadsWithoutWritableDisk(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{true, false} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("full %v, killed %v", full, killed), func(t *testing.T) {
				t.Parallel()
				disk := smallDisk(t, 32)
				d := newOnDisk(t, 200, "DATABASE_URL=sqlite:"+filepath.Join(disk, "assay.db"))
				if killed {
					d.kill()
				} else if _, err := d.stop(); err != nil {
					t.Fatal(err)
				}
				mend := func() error { return syscall.Mount("", disk, "", syscall.MS_REMOUNT, "") }
				if full {
					filler := fill(t, disk)
					fillUp(t, filler)
					mend = func() error { return os.Remove(filler) }
				} else if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
					t.Fatal(err)
				}
				d.spawn()
				d.await("a response", func() bool {
					resp, err := client.Get("http://" + d.addr + "/api/health")
					if err == nil {
						_ = resp.Body.Close()
					}
					return err == nil
				})
				d.reads()
				if _, err := d.tryPush("late", 730, newAssets(2_000)); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), `"database_`) {
					t.Errorf("push: got %v, want 503 with a code", err)
				}
				d.failsLoudly("make room or make it writable")
				_, health, err := d.call(http.MethodGet, "/api/health", nil)
				if err != nil || !strings.Contains(string(health), "open for reading only") {
					t.Errorf("health: got %s, error %v, want a database that is open for reading only", health, err)
				}
				if !strings.Contains(string(health), `"database":"readOnly"`) {
					t.Errorf("health: got %s, want the database readOnly", health)
				}
				d.staysLoud()
				if err := mend(); err != nil {
					t.Fatal(err)
				}
				// The server must detect that the disk is writable again.
				d.await("a successful health check", func() bool {
					resp, err := client.Get("http://" + d.addr + "/api/health")
					if err == nil {
						_ = resp.Body.Close()
					}
					return err == nil && resp.StatusCode == http.StatusOK
				})
				d.reads()
				if _, err := d.tryPush("late", 730, newAssets(20)); err != nil {
					t.Error(err)
				}
				if took, err := d.stop(); err != nil {
					t.Errorf("stop: got error %[2]v after %[1]v, want none", took, err)
				}
			})
		}
	}
}
