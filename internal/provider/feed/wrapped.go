package feed

import (
	"bytes"
	"slices"
	"strings"

	"assay/internal/provider"
)

// errEmpty rejects a list without rows. An empty list does not prove that all offers ended.
var errEmpty = Malformed("the list is empty")

// Rows reads a list: an array of rows, or an object with one row per member. An empty list is
// an error.
func (r *Reader) Rows(row func() error) error {
	n := 0
	counted := func() error { n++; return row() }
	var err error
	if r.Is('{') {
		err = r.Object(func([]byte) error { return counted() })
	} else {
		err = r.Array(counted)
	}
	if err == nil && n == 0 {
		err = errEmpty
	}
	return err
}

// Lines reads a sequence of documents, usually one per line. It calls line before each
// document, and line must read that document. A response can be truncated between documents,
// so Lines cannot detect that.
func (r *Reader) Lines(line func() error) error {
	for r.dec.PeekKind() != 0 { // 0 at the end or at malformed JSON; the next read tells them apart
		if err := line(); err != nil {
			return err
		}
	}
	return nil
}

// errorMembers are the members of an error response that state the failure.
var errorMembers = [...]string{"success", "error", "msg", "message"}

// Wrapped reads an object that has a list in the member named list. It reads the list like
// Rows. It reads the members in names into cells, which stay valid. It returns an error if one
// of these members is a duplicate, if the member success is present and not true, or if there
// is no list.
func (r *Reader) Wrapped(list string, row func() error, names []string, cells []Cell) error {
	clear(cells)
	known := slices.Concat([]string{list}, errorMembers[:], names)
	values := make([]Cell, len(known))
	err := r.Object(func(name []byte) error {
		i := slices.Index(known, string(name))
		switch {
		case i < 0:
			return r.Skip()
		case values[i].Kind != Absent:
			return Malformed("member %s given twice", known[i])
		case i == 0 && !r.Is('n') && !refused(values[1]):
			values[0].Kind = Other
			return r.Rows(row)
		}
		c, err := r.Cell()
		values[i] = Cell{Kind: c.Kind, Text: bytes.Clone(c.Text)}
		return err
	})
	if err != nil {
		return err
	}
	copy(cells, values[1+len(errorMembers):])
	reason := ""
	for _, c := range values[2 : 1+len(errorMembers)] {
		if c.Kind == Text && reason == "" {
			reason = Clip(c.Text)
		}
	}
	switch {
	case refused(values[1]), values[0].Kind <= Null && reason != "":
		return r.refusal(reason)
	case values[0].Kind <= Null:
		return Malformed("response without %s", list)
	}
	return nil
}

// refused reports whether success marks an error response.
func refused(success Cell) bool {
	return success.Kind != Absent && string(success.Text) != "true"
}

// refusal returns the error for an error response with status 200.
func (r *Reader) refusal(reason string) error {
	e := provider.Protocol(r.provider, "the provider refused the request without a reason")
	if reason != "" {
		e.Detail = "the provider refused the request: " + reason
	}
	lower := strings.ToLower(reason)
	for _, slow := range []string{"too many", "too fast", "rate limit", "ratelimit", "slow down", "limit exceeded"} {
		if strings.Contains(lower, slow) {
			e.Kind = provider.KindRateLimited
		}
	}
	return e
}
