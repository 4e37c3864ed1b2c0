package db

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Objects are the texts of objects of a schema, by what and where they are.
type Objects map[string]string

// Change is an object that differs.
type Change struct{ Object, Expected, Actual string }

// Compare returns what differs, in the order of the names.
func (want Objects) Compare(have Objects) (changes []Change) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(want)), maps.Keys(have))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		expected, there := want[name]
		if !there {
			expected = "none"
		}
		actual, there := have[name]
		if !there {
			actual = "none"
		}
		if actual != expected {
			changes = append(changes, Change{name, expected, actual})
		}
	}
	return changes
}

// ReadObjects reads the objects that a query selects by name and text.
func ReadObjects(ctx context.Context, q Querier, query string, args ...any) (Objects, error) {
	out := Objects{}
	_, err := Collect(ctx, q, func(r *sql.Rows, _ *struct{}) error {
		var name, text string
		err := r.Scan(&name, &text)
		for n := 2; out[name] != ""; n++ { // two of one name are two
			name += " (" + strconv.Itoa(n) + ")"
		}
		out[name] = text
		return err
	}, query, args...)
	return out, err
}

// String writes lines of a name and a text, each quoted, in the order of the names.
func (want Objects) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		fmt.Fprintf(&b, "%q %q\n", name, want[name])
	}
	return b.String()
}

// ParseObjects reads what Objects.String has written.
func ParseObjects(text string) (Objects, error) {
	out := Objects{}
	for line := range strings.Lines(text) {
		var name, value string
		if _, err := fmt.Sscanf(line, "%q %q\n", &name, &value); err != nil {
			return nil, fmt.Errorf("objects of a schema: %w in %.80q", err, line)
		}
		out[name] = value
	}
	return out, nil
}
