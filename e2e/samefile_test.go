package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSameFile_SecondServerFails starts a second server with a hard link to the database of
// the first.
func TestSameFile_SecondServerFails(t *testing.T) {
	t.Parallel()
	first, second := newServer(t), newServer(t)
	first.start()
	if err := os.Link(filepath.Join(first.dir, "assay.db"), filepath.Join(second.dir, "assay.db")); err != nil {
		t.Fatal(err)
	}
	second.spawn()
	err := <-second.done
	second.done <- err
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 || !contains(second.log, "another process uses this database") {
		t.Errorf("the second server ended with %v, want exit code 7 and the reason: %s", err, second.log)
	}
	first.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
	first.kill()
	checkInvariants(t, first.open())
}
