package wallet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/internal/diskfile"
)

// Folder keeps checkpoints of the whole ledger in files, outside the database.
type Folder struct{ Dir string }

// maxCheckpoints is the maximum number of files; the oldest are removed.
const maxCheckpoints = 64

const (
	unfinished       = ".writing-"
	checkpointPrefix = "wallet-"
	checkpointSuffix = ".checkpoint"
	checkpointStamp  = "20060102T150405.000000Z" // sorts as time does
)

// Newest opens the newest checkpoint for ReadCheckpoint. Where there is none yet
// the error is an fs.ErrNotExist. It never blocks, even on a pipe.
func (f Folder) Newest() (*os.File, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fs.ErrNotExist
	}
	return diskfile.OpenRegular(filepath.Join(f.Dir, names[len(names)-1]))
}

// Write writes a checkpoint of the fee rules and of the accounts that fill adds. It is there as a
// whole or not at all, whenever the machine stops.
func (f Folder) Write(keys *Ring, at time.Time, rules Mark, fill func(*CheckpointWriter) error) (path string, err error) {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return "", err
	}
	temp, err := diskfile.Create(filepath.Join(f.Dir, unfinished+"*"))
	if err != nil {
		return "", err
	}
	defer temp.Discard()
	w := NewCheckpointWriter(temp, keys, at, rules)
	if err := fill(w); err != nil {
		return "", err
	}
	if err := w.Finish(); err != nil {
		return "", err
	}
	name, err := f.nameAt(at)
	if err != nil {
		return "", err
	}
	path = filepath.Join(f.Dir, name)
	if err := temp.Commit(path); err != nil {
		return "", err
	}
	return path, f.prune()
}

// Tidy removes what processes that were killed were writing. What is younger than an
// hour may be another one's work.
func (f Folder) Tidy(now time.Time) error {
	files, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), unfinished) {
			continue
		}
		if info, failed := file.Info(); failed == nil && now.Sub(info.ModTime()) > time.Hour {
			err = errors.Join(err, os.Remove(filepath.Join(f.Dir, file.Name())))
		}
	}
	return err
}

// nameAt names a checkpoint of a moment, such that it is the newest: where the clock
// was set back, it takes the moment after the newest one. Otherwise the checkpoint would
// not be the newest until the clock catches up, and might be pruned at once.
func (f Folder) nameAt(at time.Time) (string, error) {
	names, err := f.names()
	if err != nil {
		return "", err
	}
	for _, name := range slices.Backward(names) {
		stamp := strings.TrimSuffix(strings.TrimPrefix(name, checkpointPrefix), checkpointSuffix)
		if last, err := time.Parse(checkpointStamp, stamp); err == nil {
			if !at.After(last) {
				at = last.Add(time.Microsecond)
			}
			break
		} // else the name is not one of ours
	}
	return checkpointPrefix + at.UTC().Format(checkpointStamp) + checkpointSuffix, nil
}

// names returns the files' names, the oldest first.
func (f Folder) names() ([]string, error) {
	files, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, file := range files {
		if strings.HasPrefix(file.Name(), checkpointPrefix) && strings.HasSuffix(file.Name(), checkpointSuffix) {
			names = append(names, file.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

func (f Folder) prune() error {
	names, err := f.names()
	for _, name := range names[:max(0, len(names)-maxCheckpoints)] {
		err = errors.Join(err, os.Remove(filepath.Join(f.Dir, name)))
	}
	return err
}
