package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// started is a running `assay serve`.
type started struct {
	dir  string
	addr string
	stop func() int // stops the server and returns the exit code
}

// startServer runs `assay serve` on a free port until the test ends.
func startServer(t *testing.T, dir string) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	logs, log := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- Program{
			Args:    []string{"serve", "--listen-addr", "127.0.0.1:0", "--data-dir", dir, "--market-price-providers", "sim"},
			Stdin:   strings.NewReader(""),
			Stdout:  io.Discard,
			Stderr:  log,
			Now:     time.Now,
			Environ: nil,
		}.Run(ctx)
		_ = log.Close()
	}()
	addr := make(chan string, 1)
	go func() {
		defer close(addr)
		serving := regexp.MustCompile(`url=http://(\S+)`)
		var seen strings.Builder
		buf := make([]byte, 4096)
		for printed := false; ; {
			n, err := logs.Read(buf)
			seen.Write(buf[:n])
			if m := serving.FindStringSubmatch(seen.String()); m != nil && !printed {
				addr <- m[1]
				printed = true
			}
			if err != nil {
				return
			}
		}
	}()
	s := &started{dir: dir, stop: func() int { cancel(); return <-done }}
	t.Cleanup(cancel)
	var ok bool
	if s.addr, ok = <-addr; !ok {
		t.Fatalf("got exit code %d of the server, want a listening server", <-done)
	}
	return s
}

// assay runs a command with the server's settings. It returns the exit code and output.
func (s *started) assay(args ...string) (code int, out string) {
	var text bytes.Buffer
	code = Program{
		Args:   append(args, "--listen-addr", s.addr, "--data-dir", s.dir),
		Stdin:  strings.NewReader(`{"appId":730,"contextId":"2","snapshotAt":"2026-01-02T03:04:05Z","items":[{"assetId":"1","marketHashName":"★ Karambit"}]}`),
		Stdout: &text, Stderr: &text, Now: time.Now,
	}.Run(context.Background())
	return code, text.String()
}

func TestServe_CommandsUseSecretsOfDataDirectory(t *testing.T) {
	s := startServer(t, filepath.Join(t.TempDir(), "data"))
	for _, step := range []struct {
		args string
		code int
		want string
	}{
		{"healthcheck", exitOK, "ok, version"},
		{"inventory sync u1 --file -", exitOK, "1 added"},
		{"refresh --force --wait", exitOK, "finished"},
		{"status", exitOK, "1 fresh"},
		{"prices Karambit", exitNotFound, ""},
		{"inventory show u1", exitOK, "★ Karambit"},
		{"inventory show unknown", exitNotFound, ""},
	} {
		if code, out := s.assay(strings.Fields(step.args)...); code != step.code || !strings.Contains(out, step.want) {
			t.Errorf("assay %s: got exit code %d, want %d with %q:\n%s", step.args, code, step.code, step.want, out)
		}
	}
	code, out := s.assay("prices", "★ Karambit", "--json")
	var item view.ItemDetail
	if err := json.Unmarshal([]byte(out), &item); code != 0 || err != nil || item.CurrentPrice <= 0 || len(item.Snapshots) < 5 {
		t.Errorf("item --json: got exit code %d, error %v, want a price with at least 5 quotes:\n%s", code, err, out)
	}
	if code := s.stop(); code != exitOK {
		t.Errorf("stopped server: got exit code %d, want 0", code)
	}
}

func TestBackup_RestoresServerData(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, filepath.Join(dir, "data"))
	if code, out := s.assay("inventory", "sync", "u1", "--file", "-"); code != 0 {
		t.Fatalf("inventory sync: got exit code %d, want 0: %s", code, out)
	}
	file := filepath.Join(dir, "backup.db")
	if code, out := s.assay("backup", file, "--with-secrets"); code != 0 {
		t.Fatalf("backup --with-secrets: got exit code %d, want 0: %s", code, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("backup file: got %v, error %v, want a file that only its owner can read", info, err)
	}
	if code, out := s.assay("backup", file); code != exitRefused || strings.Contains(out, "--help") || !strings.Contains(out, "exists") {
		t.Errorf("backup to an existing file: got exit code %d, want a refusal: %s", code, out)
	}
	if code, out := s.assay("restore", file, "--force"); code != exitRefused {
		t.Errorf("restore while the server runs: got exit code %d, want a refusal: %s", code, out)
	}
	secret, err := os.ReadFile(filepath.Join(s.dir, "secrets", "ADMIN_API_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(file); err != nil || bytes.Contains(content, bytes.TrimSpace(secret)) {
		t.Errorf("read the backup: got error %v or a secret, want neither", err)
	}
	s.stop()
	if code, out := s.assay("restore", file); code != exitRefused || !strings.Contains(out, "--force") {
		t.Errorf("restore over a database: got exit code %d, want a refusal with the hint --force: %s", code, out)
	}

	there := &started{dir: filepath.Join(dir, "there"), addr: s.addr}
	if code, out := there.assay("restore", file, "--with-secrets"); code != 0 {
		t.Fatalf("restore --with-secrets: got exit code %d, want 0: %s", code, out)
	}
	if restored, err := os.ReadFile(filepath.Join(there.dir, "secrets", "ADMIN_API_TOKEN")); err != nil || !bytes.Equal(restored, secret) {
		t.Errorf("secrets after the restore: got error %v, want the secrets of the backup", err)
	}
	again := startServer(t, there.dir)
	if code, out := again.assay("inventory", "show", "u1"); code != 0 || !strings.Contains(out, "★ Karambit") {
		t.Errorf("inventory after the restore: got exit code %d, want the pushed knife: %s", code, out)
	}
	again.stop()
}

func TestBackup_ValidatesBeforeWriting(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, filepath.Join(dir, "data"))
	s.stop()
	bare := filepath.Join(dir, "bare.db")
	if code, out := s.assay("backup", bare); code != exitOK {
		t.Fatalf("backup: got exit code %d, want 0: %s", code, out)
	}
	full := filepath.Join(dir, "full.db")
	if code, out := s.assay("backup", full, "--with-secrets"); code != exitOK {
		t.Fatalf("backup --with-secrets: got exit code %d, want 0: %s", code, out)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	if code, out := s.assay("backup", full, "--with-secrets"); code != exitRefused || !strings.Contains(out, "exists") {
		t.Errorf("backup with an existing directory of secrets: got exit code %d, want a refusal: %s", code, out)
	}
	if _, err := os.Stat(full); err == nil {
		t.Error("got a backup of the database without the secrets, want none")
	}
	// An error in an unrelated setting does not prevent a backup.
	broken := Program{
		Args: []string{"backup", filepath.Join(dir, "rescued.db"), "--data-dir", s.dir}, Environ: []string{"MARKET_PRICE_TTL=soon", "ADMIN_API_TOKEN_FILE=" + dir},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Now: time.Now,
	}
	if code := broken.Run(t.Context()); code != exitOK {
		t.Errorf("backup with errors in other settings: got exit code %d, want 0", code)
	}
	before := listing(t, s.dir)
	if code, out := s.assay("restore", bare, "--with-secrets", "--force"); code != exitUsage || !strings.Contains(out, "bare.db.secrets") {
		t.Errorf("restore --with-secrets of a backup without them: got exit code %d, want a usage error: %s", code, out)
	}
	if after := listing(t, s.dir); after != before {
		t.Errorf("files after the rejected restore: got\n%s\nwant the files before the restore:\n%s", after, before)
	}
}

// listing returns all files below a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var names strings.Builder
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		names.WriteString(name + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names.String()
}

func TestServe_ValidatesProvidersBeforeCreatingFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var errs bytes.Buffer
	code := Program{
		Args: []string{
			"serve", "--listen-addr", "127.0.0.1:0", "--data-dir", dir,
			"--market-price-providers", "pricelist", "--pricelist-config", filepath.Join(dir, "none.json"),
		},
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs, Now: time.Now,
	}.Run(t.Context())
	if code != exitUsage || !strings.Contains(errs.String(), "PRICELIST_CONFIG: ") {
		t.Errorf("got exit code %d, want %d: %s", code, exitUsage, &errs)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("got the new directory %s, want none", dir)
	}
}

// stopper stores the log. It stops the server when the log reports that the server is ready.
type stopper struct {
	bytes.Buffer
	stop func()
}

func (w *stopper) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("msg=serving")) {
		w.stop()
	}
	return w.Buffer.Write(b)
}

func TestServe_LogsWarnings(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log := &stopper{stop: cancel}
	code := Program{
		Args:    []string{"serve", "--listen-addr", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data")},
		Environ: []string{"LISTEN_ADRR=127.0.0.1:1"},
		Stdin:   strings.NewReader(""), Stdout: io.Discard, Stderr: log, Now: time.Now,
	}.Run(ctx)
	if code != exitOK {
		t.Errorf("got exit code %d, want 0", code)
	}
	for _, want := range []string{
		"did you mean LISTEN_ADDR?",
		`back it up and do not share it" file=`,
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("got the log\n%s\nwant %q in it once", log, want)
		}
	}
}
