package wallet_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"assay/internal/wallet"
	"assay/internal/wallet/wallettest"
)

var rules = wallet.RulesMark(1, wallet.Hash{1})

var day = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func TestFolder_KeepsTheNewestCheckpoints(t *testing.T) {
	f := wallet.CheckpointDir{Dir: filepath.Join(t.TempDir(), "checkpoints")}
	keys := wallettest.NewRing(t, "k1")
	if _, err := f.Newest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder: got %v, want fs.ErrNotExist", err)
	}
	for n := range 70 {
		_, err := f.Write(keys, day.AddDate(0, 0, n), rules, func(w *wallet.CheckpointWriter) error {
			return w.Add(wallet.Mark{Account: usd("u"), Number: int64(n + 1)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no more accounts")
	if _, err := f.Write(keys, day.AddDate(1, 0, 0), rules, func(*wallet.CheckpointWriter) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got error %v, want the error of the callback", err)
	}
	files, err := os.ReadDir(f.Dir)
	if err != nil || len(files) != 64 {
		t.Errorf("got %d files, %v; want 64", len(files), err)
	}
	newest, err := f.Newest()
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	var marks []wallet.Mark
	at, err := wallet.ReadCheckpoint(newest, keys, func(m wallet.Mark) error {
		if !m.OfRules() {
			marks = append(marks, m)
		}
		return nil
	})
	if err != nil || !at.Equal(day.AddDate(0, 0, 69)) || len(marks) != 1 || marks[0].Number != 70 {
		t.Errorf("newest checkpoint: got time %s, marks %v, error %v, want the checkpoint of day 69 with number 70", at, marks, err)
	}
}

func TestFolder_RemovesUnfinishedFiles(t *testing.T) {
	f := wallet.CheckpointDir{Dir: t.TempDir()}
	for _, name := range []string{".writing-1", "wallet-20261121T000000.000000Z.checkpoint"} {
		if err := os.WriteFile(filepath.Join(f.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for hours, want := range []int{2, 2, 1} {
		if err := f.Tidy(time.Now().Add(time.Duration(hours) * 50 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if files, err := os.ReadDir(f.Dir); err != nil || len(files) != want {
			t.Errorf("after %d checkpoints, 50 minutes apart: got %d files, want %d (%v)", hours, len(files), want, err)
		}
	}
}

func TestFolder_OpensOnlyRegularFiles(t *testing.T) {
	name := "wallet-20261121T000000.000000Z.checkpoint"
	for what, plant := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(what, func(t *testing.T) {
			f := wallet.CheckpointDir{Dir: t.TempDir()}
			if err := plant(filepath.Join(f.Dir, name)); err != nil {
				t.Fatal(err)
			}
			if file, err := f.Newest(); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Newest: got file %v, error %v, want an error other than fs.ErrNotExist", file, err)
			}
		})
	}
}

func TestFolder_LastWrittenIsNewestWhenClockIsSetBack(t *testing.T) {
	f := wallet.CheckpointDir{Dir: t.TempDir()}
	keys := wallettest.NewRing(t, "k1")
	at := day.AddDate(1, 0, 0)
	for n := range 70 { // more than the folder keeps
		_, err := f.Write(keys, at, rules, func(w *wallet.CheckpointWriter) error {
			return w.Add(wallet.Mark{Account: usd("u"), Number: int64(n + 1)})
		})
		if err != nil {
			t.Fatal(err)
		}
		at = day.Add(time.Duration(n) * time.Nanosecond) // set back by a year
		newest, err := f.Newest()
		if err != nil {
			t.Fatal(err)
		}
		var last int64
		_, err = wallet.ReadCheckpoint(newest, keys, func(m wallet.Mark) error {
			last = m.Number
			return nil
		})
		if err := errors.Join(err, newest.Close()); err != nil || last != int64(n+1) {
			t.Fatalf("after %[1]d checkpoints: got number %[2]d as the newest, error %[3]v, want %[1]d", n+1, last, err)
		}
	}
}
