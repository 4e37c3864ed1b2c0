package view

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"assay/internal/fault"
)

// A cursor is opaque to clients. It is a JSON array in base64: the name of the list and the
// key of the last element of a page. Cursors are validated like any other input. A list
// rejects the cursors of other lists.

func cursor(list string, key ...any) *string {
	b, err := json.Marshal(append([]any{list}, key...))
	if err != nil {
		return nil // keys are strings and integers, which always encode
	}
	s := base64.RawURLEncoding.EncodeToString(b)
	return &s
}

// readCursor parses a list's cursor into the parts of its key. A part is a string, an ID
// (int64, at least 1) or a position (int, at least 0). An empty cursor leaves the parts
// unchanged.
func readCursor(text, list string, parts ...any) error {
	if text == "" {
		return nil
	}
	bad := fault.New(fault.Invalid, "invalid_cursor", "The cursor is not valid for this list. Start again without a cursor.")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return bad
	}
	var key []json.RawMessage
	if json.Unmarshal(raw, &key) != nil || len(key) != 1+len(parts) || string(key[0]) != strconv.Quote(list) {
		return bad
	}
	key = key[1:]
	for i := range parts {
		if string(key[i]) == "null" || json.Unmarshal(key[i], parts[i]) != nil {
			return bad
		}
		if id, ok := parts[i].(*int64); ok && *id < 1 {
			return bad
		}
		if n, ok := parts[i].(*int); ok && *n < 0 {
			return bad
		}
	}
	return nil
}

// page returns the first limit rows as a page. The caller reads limit+1 rows: an extra row
// means that there is a next page.
func page[R, T any](rows []R, limit int, convert func(*R) T, key func(*R) *string) Page[T] {
	p := Page[T]{Items: []T{}}
	if len(rows) > limit {
		rows = rows[:limit]
		p.NextCursor = key(&rows[limit-1])
	}
	for i := range rows {
		p.Items = append(p.Items, convert(&rows[i]))
	}
	return p
}

// Page is one page of a list. NextCursor is null on the last page.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}
