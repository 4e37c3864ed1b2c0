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

// Objects maps the name of a schema object, such as "column item.price", to its
// definition.
type Objects map[string]string

// Change is a schema object that differs from the expected one.
type Change struct{ Object, Expected, Actual string }

// Compare returns the differences, sorted by name.
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

// ReadObjects runs a query that selects the name and definition of schema objects.
func ReadObjects(ctx context.Context, q Querier, query string, args ...any) (Objects, error) {
	out := Objects{}
	err := Each(ctx, q, func(r *sql.Rows) error {
		var name, text string
		err := r.Scan(&name, &text)
		for n := 2; out[name] != ""; n++ { // number objects that have the same name
			name += " (" + strconv.Itoa(n) + ")"
		}
		out[name] = text
		return err
	}, query, args...)
	return out, err
}

// String returns one line for each object: its quoted name and definition, sorted by
// name.
func (want Objects) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		fmt.Fprintf(&b, "%q %q\n", name, want[name])
	}
	return b.String()
}

// ParseObjects parses the output of Objects.String.
func ParseObjects(text string) (Objects, error) {
	out := Objects{}
	for line := range strings.Lines(text) {
		var name, value string
		if _, err := fmt.Sscanf(line, "%q %q\n", &name, &value); err != nil {
			return nil, fmt.Errorf("parse schema objects: %w in %.80q", err, line)
		}
		out[name] = value
	}
	return out, nil
}
