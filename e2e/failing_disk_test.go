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

	"assay/internal/provider/sim"
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

// newOnDiskOf is like newOnDisk, with a custom server.
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
			d.t.Errorf("health while all writes fail: got status %d, want 503", got)
			return
		}
	}
}

// reads checks that all written data can still be read.
func (d *onDisk) reads() {
	d.t.Helper()
	if got := len(all[item](d.server, "/api/prices/items")); got != d.names {
		d.t.Errorf("got %d readable items, want %d", got, d.names)
	}
	if got := len(all[row](d.server, "/api/inventory/user0")); got != d.names {
		d.t.Errorf("got %d readable rows, want %d", got, d.names)
	}
	d.status()
}

// recovers waits until the run has finished. If wholly is set, it also waits until the health
// check succeeds, which takes some seconds.
func (d *onDisk) recovers(id string, wholly bool) {
	d.t.Helper()
	if end := d.awaitEnd(); end.Status.JobID != id || end.Status.State != "finished" {
		d.t.Errorf("last job: got %+v, want %s finished", end.Status, id)
	}
	if wholly {
		d.await("a successful health check", func() bool { return d.health() == http.StatusOK })
	}
	checkJob(d.t, d.server, id, int64(d.names))
	checkRows(d.t, d.server, 1)
	if took, err := d.stop(); err != nil {
		d.t.Errorf("stop: got error %[2]v after %[1]v, want none", took, err)
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
			t.Errorf("cannot unmount the file system: %v", err)
		}
	})
	return dir
}

// newAssets returns assets with new names of maximum length.
func newAssets(n int) []asset {
	out := make([]asset, n)
	for i := range out {
		out[i] = asset{AssetID: fmt.Sprint(i), MarketHashName: fmt.Sprintf("New %s | Item %d", strings.Repeat("x", 200), i)}
	}
	return out
}

// fill uses nearly all free space. Others may write at the same time, such as PostgreSQL's vacuum.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const leave = 96 << 10
	chunk := make([]byte, 16<<10)
	for {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(dir, &stat); err != nil {
			t.Fatal(err)
		}
		if int64(stat.Bavail)*stat.Bsize <= leave {
			return path
		}
		if _, err := f.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
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

// startedOr returns the ID of the started or current run. A commit that returned an error may
// have succeeded.
func (d *onDisk) startedOr(id string, err error) string {
	d.t.Helper()
	if err == nil {
		return id
	}
	return d.status().Status.JobID
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
