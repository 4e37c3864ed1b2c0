package pricelist

import (
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider/feed"
)

// jsonReader reads a list from a JSON document or from NDJSON.
type jsonReader struct {
	*feed.Reader
	list   *list
	rows   *rows
	cells  []feed.Cell
	nested feed.Cell // array of quotes of the current row

	duplicate bool // the current row or element has a configured member twice

	path  path   // path of the current member
	found bool   // whether the root was found
	seen  []bool // whether a field was found in any row

	// Member names for error messages.
	top       []string // of the document
	outline   []string // of the first row and the first element
	inElement bool     // outline includes the members of an element
}

func newJSONReader(src io.Reader, r *rows) *jsonReader {
	return &jsonReader{
		Reader: feed.NewReader(Name, src, r.CountingSink), list: r.list, rows: r,
		cells: make([]feed.Cell, len(r.list.fields)), seen: make([]bool, len(r.list.fields)),
	}
}

// readJSON reads a list of format jsonArray or jsonObject.
func readJSON(src io.Reader, r *rows) error {
	j := newJSONReader(src, r)
	if err := j.document(); err != nil {
		return err
	}
	if !j.found {
		return feed.Malformed("root %s is missing; the document has %s", j.list.root, quoteSome(j.top))
	}
	if err := j.End(); err != nil {
		return err
	}
	return j.check()
}

// readNDJSON reads a list with one JSON object per line. A list that is truncated at a line
// break looks complete, so only minItems can detect it.
func readNDJSON(src io.Reader, r *rows) error {
	j := newJSONReader(src, r)
	if err := j.Lines(func() error { return j.row(nil) }); err != nil {
		return err
	}
	if err := j.End(); err != nil {
		return err
	}
	return j.check()
}

// document reads the value at j.path. It descends to the root and to the list's time.
func (j *jsonReader) document() error {
	switch l := j.list; {
	case len(j.path) == len(l.root) && j.path.within(l.root):
		if j.found {
			return feed.Malformed("root %s is given twice", l.root)
		}
		j.found = true
		return j.body()
	case l.listTime.path != nil && len(j.path) == len(l.listTime.path) && j.path.within(l.listTime.path):
		return j.listTime()
	case j.Is('{') && (l.root.within(j.path) || l.listTime.path.within(j.path)):
		return j.members()
	default:
		return j.Skip()
	}
}

// members reads an object that contains the root or the list's time.
func (j *jsonReader) members() error {
	return j.Object(func(member []byte) error {
		name := string(member)
		if len(j.path) == 0 && len(j.top) < maxShown {
			j.top = append(j.top, name)
		}
		j.path = append(j.path, name)
		err := j.document()
		j.path = j.path[:len(j.path)-1]
		return err
	})
}

// listTime reads the time of the whole list.
func (j *jsonReader) listTime() error {
	c, err := j.Cell()
	if err != nil {
		return err
	}
	t, reason := c.Time(j.list.listTime.format)
	if reason != "" {
		return feed.Malformed("the list's time at %s is not in the configured format", j.list.listTime.path)
	}
	j.rows.time = t
	return nil
}

// body reads the rows.
func (j *jsonReader) body() error {
	want := jsontext.Kind('[')
	if j.list.format == formatObject {
		want = '{'
	}
	switch got := j.Kind(); {
	case got != want && got != 0: // 0 means malformed JSON: the next read returns the error
		return feed.Malformed("root %s is %s, expected %s", j.list.root, feed.KindName(got), feed.KindName(want))
	case want == '{':
		return j.Object(j.row)
	default:
		return j.Array(func() error { return j.row(nil) })
	}
}

// row reads one row. key is the row's key in an object, or nil in an array.
func (j *jsonReader) row(key []byte) error {
	c, err := j.Cell()
	if err != nil {
		return err
	}
	clear(j.cells)
	j.nested, j.duplicate = feed.Cell{}, false
	if j.outline == nil {
		j.outline = j.outlineOf(c)
	}
	if !isObject(c) && j.list.tree.children != nil {
		j.rows.rows++
		j.Reject("", key, feed.RejectRow)
		return nil
	}
	j.walk(c, j.list.tree)
	if j.duplicate {
		j.rows.rows++
		j.Reject("", key, feed.RejectTwice)
		return nil
	}
	if !j.rows.begin(key, j.cells) {
		return nil
	}
	if j.list.inner == nil {
		return j.rows.row(j.cells)
	}
	return j.Each(j.nested, j.element)
}

// element reads one element of the array of quotes within a row.
func (j *jsonReader) element(c feed.Cell) error {
	for _, f := range j.list.elements {
		j.cells[f] = feed.Cell{}
	}
	if !j.inElement {
		j.inElement = true
		j.outline = append(j.outline, j.outlineOf(c)...)
	}
	j.walk(c, j.list.inner)
	if j.duplicate {
		j.duplicate = false
		j.Reject("", []byte(j.rows.q.Name), feed.RejectTwice)
		return nil
	}
	return j.rows.row(j.cells)
}

func isObject(c feed.Cell) bool { return c.Kind == feed.Other && c.Text[0] == '{' }

// walk stores the value c of node n and of the nodes below it in the cells.
func (j *jsonReader) walk(c feed.Cell, n *node) {
	if n.field != none {
		j.seen[n.field] = true
		j.duplicate = j.duplicate || j.cells[n.field].Kind != feed.Absent
		j.cells[n.field] = c
	}
	if n.each {
		j.duplicate = j.duplicate || j.nested.Kind != feed.Absent
		j.nested = c
	}
	if n.children == nil {
		return
	}
	_ = j.Members(c, func(name []byte, member feed.Cell) error {
		if child := n.child(name); child != nil {
			j.walk(member, child)
		}
		return nil
	})
}

// check returns an error if the rows have no quotes and a configured field is missing in
// all of them.
func (j *jsonReader) check() error {
	if j.rows.Quotes() > 0 {
		return nil
	}
	var missing []string
	for i, seen := range j.seen {
		if !seen {
			missing = append(missing, j.list.fields[i])
		}
	}
	if j.rows.rows == 0 || missing == nil {
		return nil
	}
	return feed.Malformed("no row has %s; the first row has %s", quoteSome(missing), quoteSome(j.outline))
}

// outlineOf returns the member names of a row for error messages.
func (j *jsonReader) outlineOf(row feed.Cell) []string {
	names := []string{}
	_ = j.Members(row, func(name []byte, _ feed.Cell) error {
		if len(names) < maxShown {
			names = append(names, feed.Clip(name))
		}
		return nil
	})
	return names
}
