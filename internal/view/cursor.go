package view

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"assay/internal/fault"
)

// Cursors are opaque to clients: the name of the list and the key of the last
// element of a page, as base64 of a JSON array. They are checked like any other
// input, and one list does not take another's.

func cursor(list string, key ...any) *string {
	b, err := json.Marshal(append([]any{list}, key...))
	if err != nil {
		return nil // keys are strings and integers
	}
	s := base64.RawURLEncoding.EncodeToString(b)
	return &s
}

// readCursor reads a list's cursor into the parts of its key: texts, ids (int64),
// which begin at 1, and places (int), which begin at 0. An empty one leaves them.
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

// page cuts a list that was read with limit+1 rows, and makes the cursor of the next
// page.
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

// Page is one page of a list; NextCursor is null at its end.
type Page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}
