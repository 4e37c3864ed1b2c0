package store

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// objects are the texts of objects of a schema, by what and where they are.
type objects map[string]string

// change is an object that differs.
type change struct{ Object, Expected, Actual string }

// compare returns what differs, in the order of the names.
func (want objects) compare(have objects) (changes []change) {
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
			changes = append(changes, change{name, expected, actual})
		}
	}
	return changes
}

func readObjects(ctx context.Context, q querier, query string, args ...any) (objects, error) {
	out := objects{}
	_, err := collect(ctx, q, func(r *sql.Rows, _ *struct{}) error {
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

// parseObjects reads lines of a name and a text, each quoted.
func parseObjects(text string) (objects, error) {
	out := objects{}
	for line := range strings.Lines(text) {
		var name, value string
		if _, err := fmt.Sscanf(line, "%q %q\n", &name, &value); err != nil {
			return nil, fmt.Errorf("guard_postgres.txt: %w in %.80q", err, line)
		}
		out[name] = value
	}
	return out, nil
}
