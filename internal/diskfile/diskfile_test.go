package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFile_IsCompleteOrAbsent(t *testing.T) {
	for _, temp := range []string{"x.partial", ".x-*"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		for round, content := range []string{"first", "second, which is longer", "third"} {
			write(t, filepath.Join(dir, "x.partial"), "file of a crashed process")
			f, err := Create(filepath.Join(dir, temp))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(content); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); (err == nil) != (round > 0) {
				t.Fatalf("round %d: got error %v of Stat before Commit, want one only in the first round", round, err)
			}
			if err := f.Commit(path); err != nil {
				t.Fatal(err)
			}
			f.Discard()
			info, err := os.Stat(path)
			if got, _ := os.ReadFile(path); string(got) != content || err != nil || info.Mode() != 0o600 {
				t.Errorf("%s, round %d: got %q, %v, %v; want %q with mode 0600", temp, round, got, info, err, content)
			}
		}
	}
}

func TestFile_DiscardRemovesTheFile(t *testing.T) {
	dir := t.TempDir()
	for _, temp := range []string{"x.partial", ".x-*"} {
		f, err := Create(filepath.Join(dir, temp))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(filepath.Join(dir, "missing", "x")); err == nil {
			t.Error("Commit to a missing directory: got no error, want one")
		}
		f.Discard()
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("got files %v, %v after Discard, want none", files, err)
	}
}

func TestCreate_DoesNotWriteToAFileOfAnotherProcess(t *testing.T) {
	temp := filepath.Join(t.TempDir(), "x.partial")
	other, err := Create(temp)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Discard()
	f, err := Create(temp)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if _, err := other.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(temp); err != nil || len(got) != 0 {
		t.Errorf("got content %q, %v in the new file, want none", got, err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRegular_RefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	write(t, file, "x")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file: nil, dir: ErrNotRegular, pipe: ErrNotRegular, os.DevNull: ErrNotRegular, file + "x": fs.ErrNotExist} {
		f, err := OpenRegular(path)
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: got error %v, want %v", path, err, want)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}
