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

// CheckpointDir stores checkpoints of the whole ledger in files outside the database.
type CheckpointDir struct{ Dir string }

// maxCheckpoints is the maximum number of checkpoint files. Write removes older files.
const maxCheckpoints = 64

const (
	unfinished       = ".writing-"
	checkpointPrefix = "wallet-"
	checkpointSuffix = ".checkpoint"
	checkpointStamp  = "20060102T150405.000000Z" // alphabetical order is time order
)

// Newest opens the newest checkpoint for ReadCheckpoint. It returns fs.ErrNotExist if there
// is no checkpoint. It opens only regular files, so a named pipe cannot block it.
func (f CheckpointDir) Newest() (*os.File, error) {
	names, err := f.names()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fs.ErrNotExist
	}
	return diskfile.OpenRegular(filepath.Join(f.Dir, names[len(names)-1]))
}

// Write writes a checkpoint of the fee rules and of the accounts that fill adds. The file
// appears atomically, even if the machine stops during the write.
func (f CheckpointDir) Write(keys *Ring, at time.Time, rules Mark, fill func(*CheckpointWriter) error) (path string, err error) {
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

// Tidy removes unfinished files of killed processes. It keeps files younger than an hour,
// because another process may still write them.
func (f CheckpointDir) Tidy(now time.Time) error {
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

// nameAt returns the file name for a checkpoint of a time. The name always sorts after the
// existing ones. If the clock was set back, nameAt uses the first microsecond after the
// newest checkpoint. Otherwise prune might remove the new file immediately.
func (f CheckpointDir) nameAt(at time.Time) (string, error) {
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
		} // otherwise another program wrote the file
	}
	return checkpointPrefix + at.UTC().Format(checkpointStamp) + checkpointSuffix, nil
}

// names returns the names of the checkpoint files, oldest first.
func (f CheckpointDir) names() ([]string, error) {
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

func (f CheckpointDir) prune() error {
	names, err := f.names()
	for _, name := range names[:max(0, len(names)-maxCheckpoints)] {
		err = errors.Join(err, os.Remove(filepath.Join(f.Dir, name)))
	}
	return err
}
