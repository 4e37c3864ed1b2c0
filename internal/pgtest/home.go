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

// ErrNotInstalled means that the machine has no PostgreSQL server.
var ErrNotInstalled = errors.New("PostgreSQL or PgBouncer is not installed (on Debian: apt-get install postgresql pgbouncer): tests on it are skipped")

// home is where a server's programs and files are, and who runs it: it refuses
// to run as root, and then is the user that its package made.
type home struct {
	bin, dir string
	as       *syscall.Credential // nil: the current user
}

func (h home) data() string { return filepath.Join(h.dir, "data") }
func (h home) log() string  { return filepath.Join(h.dir, "log") }

// memory is where files are kept in memory.
const memory = "/dev/shm"

// roomy reports whether a directory has room for what the tests of a package
// write. In a container there are often 64 MiB in memory.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	const enough = 4 << 30
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= enough
}

// makeHome finds the programs and makes a directory for a server: in memory,
// where there is such a place, unless it is to be durable.
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
	if durable || !roomy(memory) {
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

// programs returns the directory of the newest server's programs: Debian keeps
// them out of the PATH.
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
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// command is one of the server's programs, out of reach of the signals that a
// terminal sends to the tests.
func (h home) command(name string, args ...string) *exec.Cmd {
	return h.owned(exec.Command(filepath.Join(h.bin, name), args...)) //nolint:noctx,gosec // it ends with its server; the name is ours
}

func (h home) owned(c *exec.Cmd) *exec.Cmd {
	c.Dir = h.dir
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: h.as, Setpgid: true}
	return c
}

// initialize makes an empty cluster.
func (h home) initialize() error {
	out, err := h.command("initdb", "-D", h.data(), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// A process of its own outlives the tests by a moment: when they end, however
// they do, its input ends, and it stops the server and removes the files.
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

// guard starts the process that cleans up, which begins when what it returns is
// closed.
func (h home) guard() (io.Closer, error) {
	c := h.owned(exec.Command("/bin/sh", "-c", guardScript, h.dir)) //nolint:noctx,gosec // it outlives us on purpose; the script is ours
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	return closing{input, c}, c.Start()
}

// closing ends the guard and waits for it.
type closing struct {
	io.Closer
	guard *exec.Cmd
}

func (c closing) Close() error { return errors.Join(c.Closer.Close(), c.guard.Wait()) }
