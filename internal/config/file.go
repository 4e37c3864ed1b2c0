package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxFile bounds a configuration or secret file, in bytes.
const maxFile = 1 << 20

// entry is a value with where it was given.
type entry struct {
	text, origin string
}

// layer holds the values of one place, by name. Empty values count as not given.
type layer map[string]entry

// parseFile reads NAME=value lines. Blank lines and lines that start with #
// are skipped. Spaces around names and values are dropped. A value is taken
// literally: there are no quotes, escapes or comments behind it.
func parseFile(name string, text []byte) (layer, Faults) {
	values, faults := layer{}, Faults{}
	base := filepath.Base(name)
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return values, Faults{{Origin: base, Problem: "is not UTF-8 text; save it as UTF-8"}}
	}
	if bytes.HasPrefix(text, []byte("\uFEFF")) {
		return values, Faults{{Origin: base, Problem: "starts with a byte order mark; save it as UTF-8 without one"}}
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		origin := fmt.Sprintf("%s:%d", base, number)
		key, value, problem := splitLine(line)
		if before, twice := values[key]; problem == "" && twice {
			problem = "is already set in " + before.origin + "; keep one of the two"
		}
		if problem != "" {
			faults = append(faults, Fault{Origin: origin, Setting: key, Problem: problem})
			continue
		}
		values[key] = entry{text: value, origin: origin}
	}
	for key, e := range values {
		if e.text == "" {
			delete(values, key)
		}
	}
	return values, faults
}

// splitLine returns name and value, or what is wrong with the line. The problem
// never shows the line: it may hold a secret.
func splitLine(line string) (key, value, problem string) {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok:
		return "", "", "is not a setting; write NAME=value, or # before a comment"
	case strings.HasPrefix(key, "export "):
		return "", "", `starts with "export"; write NAME=value only`
	case !settingName(key):
		return "", "", "has no setting name before the =; names are upper-case letters, digits and _"
	case len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]:
		return key, "", "is quoted; remove the quotes, since values are taken literally"
	}
	return key, value, ""
}

// settingName reports whether text has the form of a setting's name.
func settingName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return text != ""
}

// errNotRegular means a directory, pipe or device.
var errNotRegular = errors.New("is not a regular file")

// readBounded returns the content of a regular file. Its errors name no path;
// they follow one.
func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, plainPathError(err)
	}
	if len(text) > maxFile {
		return nil, errors.New("is larger than 1 MiB")
	}
	return text, nil
}

// plainPathError returns an error that reads on after the file's name.
func plainPathError(err error) error {
	wrapped, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("does not exist")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("cannot be read by this user")
	case isPath:
		return fmt.Errorf("cannot be read: %w", wrapped.Err)
	default:
		return fmt.Errorf("cannot be read: %w", err)
	}
}
