package db_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

// Environment variables of the child process that copies until it is killed.
const (
	copyFrom      = "STORE_TEST_COPY_FROM"
	copyToPath    = "STORE_TEST_COPY_TO_PATH"
	copyToURL     = "STORE_TEST_COPY_TO_URL"
	copyVerifying = "STORE_TEST_COPY_VERIFYING"
)

// copyAndHold runs in a child process. It copies an SQLite file, prints a line after it has written
// rows, and waits to be killed.
func copyAndHold(from string) {
	verifying, _ := strconv.ParseBool(os.Getenv(copyVerifying)) // this test wrote it
	_, err := db.Copy(context.Background(), db.CopyOptions{
		From: db.Options{Path: from},
		To:   db.Options{Path: os.Getenv(copyToPath), URL: os.Getenv(copyToURL)},
		OnProgress: func(p db.CopyProgress) {
			if p.Verifying == verifying && p.Table == "missing_price" {
				fmt.Fprintln(os.Stdout, "wrote")
				_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // blocks until the process is killed
			}
		},
	})
	fmt.Fprintln(os.Stdout, "ended:", err)
	os.Exit(1)
}

func TestCopy_LeavesTheTargetEmptyWhenKilled(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "assay.db")
			s := open(t, from)
			must(t, add(t, s, "A"))
			must(t, s.Close())
			target := dbtest.On(t, engine)
			to := db.Options{Path: target.Path, URL: target.URL}
			for _, verifying := range []bool{false, true} {
				killCopy(t, from, to, verifying)
				s, err := db.Open(t.Context(), to)
				must(t, err)
				if has(t, s, "A") {
					t.Error("the target has uncommitted rows, want none")
				}
				must(t, s.Close())
			}
			_, err := db.Copy(t.Context(), db.CopyOptions{From: db.Options{Path: from}, To: to})
			must(t, err)
			if !has(t, target.Open(t, db.Options{}), "A") {
				t.Error("the next copy lacks a row, want all")
			}
		})
	}
}

// killCopy starts a copy in a child process and kills it.
func killCopy(t *testing.T, from string, to db.Options, verifying bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), copyFrom+"="+from, copyToPath+"="+to.Path, copyToURL+"="+to.URL, copyVerifying+"="+strconv.FormatBool(verifying))
	in, err := c.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || line != "wrote\n" {
		t.Errorf("got output %q, want %q", line, "wrote\n")
	}
	must(t, c.Process.Kill())
	_ = c.Wait() // it always fails, because the process was killed
}
