package fee

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/internal/fault"
)

// TestFile_OpensOnlyRegularFiles guards against a refresh that blocks. Opening a pipe
// blocks, and /dev/zero has no end.
func TestFile_OpensOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, []byte(strings.Repeat(" ", MaxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{
		dir: "fee_rules_unreachable", pipe: "fee_rules_unreachable", link: "fee_rules_unreachable", "/dev/zero": "fee_rules_unreachable",
		filepath.Join(dir, "none"): "fee_rules_unreachable", large: "invalid_fee_rules",
	} {
		done := make(chan error, 1)
		go func() {
			_, err := File{Path: path}.Load(context.Background(), "")
			done <- err
		}()
		select {
		case err := <-done:
			if f := fault.Of(err); f == nil || f.Code != code || strings.Contains(f.Error(), dir) {
				t.Errorf("%s: got error %v, want the code %s without the path", path, err, code)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the refresh did not return within 10s, want an error", path)
		}
	}
}
