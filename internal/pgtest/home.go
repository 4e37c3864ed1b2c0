//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// ErrNotInstalled means that PostgreSQL or PgBouncer is not installed.
var ErrNotInstalled = errors.New("PostgreSQL or PgBouncer is not installed (on Debian: apt-get install postgresql pgbouncer): skipping its tests")

// home has the directories of a server's programs and files, and the user that runs the server.
// If this process is root, the server runs as the user of the PostgreSQL package, because
// PostgreSQL refuses to run as root.
type home struct {
	bin, dir string
	as       *syscall.Credential // nil for the current user
}

func (h home) data() string { return filepath.Join(h.dir, "data") }
func (h home) log() string  { return filepath.Join(h.dir, "log") }

// memory is the directory of a file system in memory.
const memory = "/dev/shm"

// hasSpace reports whether a directory has enough space for the tests of a package.
// Containers often have only 64 MiB of shared memory.
func hasSpace(dir string) bool {
	var fs syscall.Statfs_t
	const enough = 4 << 30
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= enough
}

// makeHome finds the programs and creates a directory for a server. The directory is in
// memory if possible, unless the server must be durable.
func makeHome(durable bool) (h home, err error) {
	if h.bin, err = programs(); err != nil {
		return h, err
	}
	if os.Geteuid() == 0 {
		if h.as, err = packageUser(); err != nil {
			return h, err
		}
	}
	parents := []string{memory, os.TempDir()}
	if durable || !hasSpace(memory) {
		parents = parents[1:]
	}
	for _, parent := range parents {
		if h.dir, err = os.MkdirTemp(parent, "assay-pg"); err == nil {
			break
		}
	}
	if err != nil || h.as == nil {
		return h, err
	}
	return h, os.Chown(h.dir, int(h.as.Uid), int(h.as.Gid))
}

// programs returns the program directory of the newest installed server. Debian does not
// add that directory to the PATH.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			return dir, nil
		}
	}
	return "", ErrNotInstalled
}

func version(initdb string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return v
}

func packageUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find a user to run PostgreSQL, which does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// command returns a command for one of the server's programs. It runs in its own process
// group, so that it does not get terminal signals for the tests.
func (h home) command(name string, args ...string) *exec.Cmd {
	return h.owned(exec.Command(filepath.Join(h.bin, name), args...)) //nolint:noctx,gosec // it ends with its server; the name is a constant
}

func (h home) owned(c *exec.Cmd) *exec.Cmd {
	c.Dir = h.dir
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: h.as, Setpgid: true}
	return c
}

// initialize creates an empty cluster.
func (h home) initialize() error {
	out, err := h.command("initdb", "-D", h.data(), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// guardScript runs in a separate process and cleans up after the tests. Its standard input
// closes when the tests end, even after a crash. The script then stops the server and
// removes the files.
const guardScript = `
cat >/dev/null
pooler=$(cat "$0"/pooler*/pid 2>/dev/null)
[ -z "$pooler" ] || kill -KILL $pooler 2>/dev/null
pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)
[ -z "$pid" ] || kill -QUIT "$pid" 2>/dev/null
n=0
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
cd /
rm -rf "$0"
`

// guard starts the cleanup process. The cleanup begins when the returned Closer is
// closed.
func (h home) guard() (io.Closer, error) {
	c := h.owned(exec.Command("/bin/sh", "-c", guardScript, h.dir)) //nolint:noctx,gosec // it must outlive the tests; the script is a constant
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	return guardProcess{input, c}, c.Start()
}

// guardProcess closes the input of the cleanup process and waits for the process to end.
type guardProcess struct {
	io.Closer
	process *exec.Cmd
}

func (c guardProcess) Close() error { return errors.Join(c.Closer.Close(), c.process.Wait()) }
