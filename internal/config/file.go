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

// maxFile is the maximum size of a configuration or secret file in bytes.
const maxFile = 1 << 20

// entry is a value with its origin.
type entry struct {
	text, origin string
}

// layer holds the values of one source by name. An empty value means that the setting is
// not set.
type layer map[string]entry

// parseFile parses lines of the form NAME=value. It skips blank lines and lines that start
// with #. It removes spaces around names and values. Values are literal: quotes, escapes and
// trailing comments have no special meaning.
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

// splitLine returns the name and value of a line, or a problem. The problem does not
// contain the line, which may contain a secret.
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

// errNotRegular reports a directory, pipe or device.
var errNotRegular = errors.New("is not a regular file: set the path of a file")

// readBounded returns the content of a regular file of up to maxFile bytes. The error
// message continues a sentence that begins with the path.
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
		return nil, errors.New("is larger than 1 MiB: use a smaller file")
	}
	return text, nil
}

// plainPathError returns an error without the path. Its message continues a sentence that
// begins with the path.
func plainPathError(err error) error {
	wrapped, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("does not exist")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("cannot be read by this user: correct its permissions")
	case isPath:
		return fmt.Errorf("cannot be read: %w", wrapped.Err)
	default:
		return fmt.Errorf("cannot be read: %w", err)
	}
}
