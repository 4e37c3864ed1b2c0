package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// onDisk is a server with prices that are about to change, on a disk that is about to fail.
type onDisk struct {
	*server
	markets *sim.Handler
	names   int
}

func newOnDisk(t *testing.T, names int, env ...string) *onDisk {
	return newOnDiskOf(t, names, func(provider ...string) *server { return newServer(t, append(provider, env...)...) })
}

// newOnDiskOf is newOnDisk with a custom server.
func newOnDiskOf(t *testing.T, names int, serve func(env ...string) *server) *onDisk {
	markets, url := simulator(t, sim.Options{Names: names, Frozen: true})
	s := serve("MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url)
	s.start()
	pushNames(s, markets.Names(), 1)
	s.awaitPriced()
	markets.Advance(2_000)
	return &onDisk{s, markets, names}
}

// health returns the status of the health check.
func (d *onDisk) health() int {
	d.t.Helper()
	resp, err := http.Get("http://" + d.addr + "/api/health")
	if err != nil {
		d.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// failsLoudly waits until the health check fails and the log contains the reason.
func (d *onDisk) failsLoudly(why ...string) {
	d.t.Helper()
	d.await("a failing health check", func() bool { return d.health() == http.StatusServiceUnavailable })
	d.await(fmt.Sprintf("a log line with one of %q", why), func() bool {
		for _, text := range why {
			if strings.Contains(d.log.String(), text) {
				return true
			}
		}
		return false
	})
}

// staysLoud checks that the health check keeps failing while the disk fails, even after sweeps
// of idle workers.
func (d *onDisk) staysLoud() {
	d.t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got := d.health(); got != http.StatusServiceUnavailable {
			d.t.Errorf("health is %d while nothing can be written", got)
			return
		}
	}
}

// reads checks that all written data can still be read.
func (d *onDisk) reads() {
	d.t.Helper()
	if got := len(all[item](d.server, "/api/prices/items")); got != d.names {
		d.t.Errorf("%d items can be read, want %d", got, d.names)
	}
	if got := len(all[row](d.server, "/api/inventory/user0")); got != d.names {
		d.t.Errorf("%d rows can be read, want %d", got, d.names)
	}
	d.status()
}

// recovers waits until the run has finished. If wholly is set, it also waits until the health
// check succeeds, which takes some seconds.
func (d *onDisk) recovers(id string, wholly bool) {
	d.t.Helper()
	if end := d.awaitEnd(); end.Status.JobID != id || end.Status.State != "finished" {
		d.t.Errorf("job %+v, want %s finished", end.Status, id)
	}
	if wholly {
		d.await("a successful health check", func() bool { return d.health() == http.StatusOK })
	}
	checkJob(d.t, d.server, id, int64(d.names))
	checkRows(d.t, d.server, 1)
	if took, err := d.stop(); err != nil {
		d.t.Errorf("the end took %v: %v", took, err)
	}
}

// smallDisk mounts a file system of the given size, writable for every user.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "assay-disk") //nolint:usetesting // other users cannot access the directories of tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

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
		t.Errorf("a push while the disk is full: %v, want 503", err)
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
		t.Errorf("a push while the disk is full: %v, want 503", err)
	}
	d.failsLoudly("No space left on device")
	id, err := d.tryRefresh()
	if err != nil && !strings.Contains(err.Error(), "503") {
		t.Errorf("a refresh while the disk is full: %v, want 503", err)
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

// newAssets returns assets with new names of maximum length.
func newAssets(n int) []asset {
	out := make([]asset, n)
	for i := range out {
		out[i] = asset{AssetID: fmt.Sprint(i), MarketHashName: fmt.Sprintf("New %s | Item %d", strings.Repeat("x", 200), i)}
	}
	return out
}

// fill uses nearly all free space.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		t.Fatal(err)
	}
	const leave = 96 << 10
	chunk := make([]byte, 64<<10)
	for room := int64(stat.Bavail) * stat.Bsize; room > leave; room -= int64(len(chunk)) {
		if _, err := f.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// tamper makes system calls of a running process fail. The returned function stops this.
func tamper(t *testing.T, pid int, rule string) (stop func()) {
	t.Helper()
	strace := straceOrSkip(t)
	calls, _, _ := strings.Cut(rule, ":")
	cmd := exec.Command(strace, "-f", "-o", "/dev/null", "-e", "trace="+calls, "-e", "inject="+rule, "-p", strconv.Itoa(pid))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Skipf("cannot trace processes: %s", lines.Text())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			continue // keep reading, because strace blocks without a reader
		}
		_ = cmd.Wait() // strace exits because of the signal
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-ended
	}
	t.Cleanup(stop)
	return stop
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

// startedOr returns the ID of the started or current run. A commit that returned an error may
// have succeeded.
func (d *onDisk) startedOr(id string, err error) string {
	d.t.Helper()
	if err == nil {
		return id
	}
	return d.status().Status.JobID
}

func TestDisk_RejectsMissingOrReplacedFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		running bool
		harm    func(t *testing.T, path string)
		says    string // while running, or at the next start
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
					t.Error("started a run without a database file")
				}
				d.failsLoudly(c.says)
				d.kill()
			}
			if c.says == "deleted" {
				c.says = "missing"
			}
			d.refusesToStart(c.says)
			if info, err := os.Stat(path); c.name[:7] == "deleted" && err == nil {
				t.Errorf("got a new database of %d bytes", info.Size())
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
func (s *server) refusesToStart(says string) {
	s.t.Helper()
	before := len(s.log.String())
	s.spawn()
	select {
	case err := <-s.done:
		s.cmd = nil
		if text := s.log.String()[before:]; err == nil || !strings.Contains(text, says) {
			s.t.Errorf("start: got error %v, output %q, want %q", err, text, says)
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
				d.await("an answer", func() bool {
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
					t.Errorf("health: got %s, error %v", health, err)
				}
				if !strings.Contains(string(health), `"database":"readOnly"`) {
					t.Errorf("health: got %s", health)
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
					t.Errorf("the end took %v: %v", took, err)
				}
			})
		}
	}
}

// fillUp uses all remaining space.
func fillUp(t *testing.T, filler string) {
	t.Helper()
	f, err := os.OpenFile(filler, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
