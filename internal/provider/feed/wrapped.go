package feed

import (
	"bytes"
	"slices"
	"strings"

	"assay/internal/provider"
)

// errEmpty refuses a list without rows: it is no reason to believe that nothing
// is offered any more.
var errEmpty = Malformed("there is nothing in it")

// Rows reads a list: an array of rows, or an object that has them by whatever
// key. One without any is refused.
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

// Lines reads documents that follow one another, one a line by custom, and calls
// line before each, which reads it. A response that ends after any of them looks
// whole: only its length can show it.
func (r *Reader) Lines(line func() error) error {
	for r.dec.PeekKind() != 0 { // 0 at the end and at malformed JSON; the next read distinguishes them
		if err := line(); err != nil {
			return err
		}
	}
	return nil
}

// The members that mark a response as a refusal and state the reason.
var refusals = [...]string{"success", "error", "msg", "message"}

// Wrapped reads an object that has its list in the member list, as Rows does,
// and puts those of its other members that names lists into cells, which stay
// valid. A member of these that is given twice fails the response. So does a
// refusal that came as a success: one whose success is not true, or that has a
// message instead of a list.
func (r *Reader) Wrapped(list string, row func() error, names []string, cells []Cell) error {
	clear(cells)
	known := slices.Concat([]string{list}, refusals[:], names)
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
	copy(cells, values[1+len(refusals):])
	reason := ""
	for _, c := range values[2 : 1+len(refusals)] {
		if c.Kind == Text && reason == "" {
			reason = Clip(c.Text)
		}
	}
	switch {
	case refused(values[1]), values[0].Kind <= Null && reason != "":
		return r.refusal(reason)
	case values[0].Kind <= Null:
		return Malformed("there is no %s in it", list)
	}
	return nil
}

// refused reports whether a response with this success is none.
func refused(success Cell) bool {
	return success.Kind != Absent && string(success.Text) != "true"
}

// refusal returns the error for a response that refuses.
func (r *Reader) refusal(reason string) error {
	e := provider.Protocol(r.provider, "the provider refuses without a reason")
	if reason != "" {
		e.Detail = "the provider refuses: " + reason
	}
	lower := strings.ToLower(reason)
	for _, slow := range []string{"too many", "too fast", "rate limit", "ratelimit", "slow down", "limit exceeded"} {
		if strings.Contains(lower, slow) {
			e.Kind = provider.KindRateLimited
		}
	}
	return e
}
