package pricelist

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider/feed"
)

// jsonReader reads a list within a JSON document, or one of JSON lines. The
// grammar is checked by jsontext, in full and strictly: invalid UTF-8 fails the
// list. Only duplicate names pass there; what they mean is decided here.
type jsonReader struct {
	list    *list
	dec     *jsontext.Decoder
	rows    *rows
	cells   []feed.Cell
	scratch []byte // texts of the current row that had escapes
	twice   bool   // a wanted member came twice in the current row
	nested  []byte // array of quotes of the current row; nil: none

	path    path // of the member that is being read
	found   bool // the root was met
	hit     []bool
	outline []string // members of the first row and its first element, for messages
	inside  bool     // an element was met
	top     []string // members of the document, for messages
}

func newJSONReader(src io.Reader, r *rows) *jsonReader {
	return &jsonReader{
		list: r.list, dec: feed.NewDecoder(src), rows: r,
		cells: make([]feed.Cell, len(r.list.fields)), hit: make([]bool, len(r.list.fields)),
	}
}

// readJSON reads a list of format jsonArray or jsonObject.
func readJSON(src io.Reader, r *rows) error {
	j := newJSONReader(src, r)
	if err := j.document(); err != nil {
		return err
	}
	if !j.found {
		return &malformed{fmt.Sprintf("there is nothing at root %s; the document has %s", j.list.root, quoteSome(j.top))}
	}
	if _, err := j.dec.ReadToken(); err != io.EOF {
		if err != nil {
			return err
		}
		return &malformed{"something follows the document"}
	}
	return j.check()
}

// document reads one value of the document around the rows.
func (j *jsonReader) document() error {
	switch l := j.list; {
	case len(j.path) == len(l.root) && j.path.within(l.root):
		if j.found {
			return &malformed{fmt.Sprintf("there are two of root %s", l.root)}
		}
		j.found = true
		return j.body()
	case l.listTime.path != nil && len(j.path) == len(l.listTime.path) && j.path.within(l.listTime.path):
		return j.listTime()
	case j.dec.PeekKind() == '{' && (l.root.within(j.path) || l.listTime.path.within(j.path)):
		return j.members()
	default:
		return j.dec.SkipValue()
	}
}

// members reads an object that the root or the list's time lies in.
func (j *jsonReader) members() error {
	if _, err := j.dec.ReadToken(); err != nil {
		return err
	}
	for j.dec.PeekKind() != '}' {
		quoted, err := j.dec.ReadValue()
		if err != nil {
			return err
		}
		name := string(feed.Unquote(quoted))
		if len(j.path) == 0 && len(j.top) < maxShown {
			j.top = append(j.top, name)
		}
		j.path = append(j.path, name)
		if err := j.document(); err != nil {
			return err
		}
		j.path = j.path[:len(j.path)-1]
	}
	_, err := j.dec.ReadToken()
	return err
}

// listTime reads the time of the whole list.
func (j *jsonReader) listTime() error {
	value, err := j.dec.ReadValue()
	if err != nil {
		return err
	}
	t, reason := j.cell(value).Time(j.list.listTime.format)
	if reason != "" {
		return &malformed{fmt.Sprintf("the list's time at %s is not in the stated format", j.list.listTime.path)}
	}
	j.rows.time = t
	return nil
}

// body reads the rows.
func (j *jsonReader) body() error {
	want, end := jsontext.Kind('['), jsontext.Kind(']')
	if j.list.format == formatObject {
		want, end = '{', '}'
	}
	got := j.dec.PeekKind()
	token, err := j.dec.ReadToken()
	if err != nil {
		return err
	}
	if got != want {
		return &malformed{fmt.Sprintf("at root %s is %s, and not %s", j.list.root, feed.KindName(token.Kind()), feed.KindName(want))}
	}
	var key []byte
	for j.dec.PeekKind() != end {
		if want == '{' {
			quoted, err := j.dec.ReadValue()
			if err != nil {
				return err
			}
			// Reading the value reuses the buffer in which the name is.
			key = append(key[:0], j.unquote(quoted)...)
		}
		if err := j.row(key); err != nil {
			return err
		}
	}
	_, err = j.dec.ReadToken()
	return err
}

// row reads one row. key is its name within an object.
func (j *jsonReader) row(key []byte) error {
	value, err := j.dec.ReadValue()
	if err != nil {
		return err
	}
	if len(value) > feed.MaxRow {
		return feed.ErrRowTooLarge // the decoder may have had it in its buffer already
	}
	clear(j.cells)
	j.scratch, j.nested, j.twice = j.scratch[:0], nil, false
	if j.outline == nil {
		j.outline = outline(value)
	}
	if value[0] != '{' && j.list.tree.children != nil {
		j.rows.rows++
		j.rows.reject("", key, feed.RejectRow)
		return nil
	}
	j.walk(value, j.list.tree)
	if j.twice {
		j.rows.rows++
		j.rows.reject("", key, feed.RejectTwice)
		return nil
	}
	if !j.rows.begin(key, j.cells) {
		return nil
	}
	if j.list.inner == nil {
		return j.rows.quote(j.cells)
	}
	return j.elements()
}

// elements reads the array of quotes within a row.
func (j *jsonReader) elements() error {
	if len(j.nested) == 0 || j.nested[0] != '[' {
		return nil
	}
	for c := feed.NewCursor(j.nested); ; {
		value, ok := c.Element()
		if !ok {
			return nil
		}
		for _, f := range j.list.elements {
			j.cells[f] = feed.Cell{}
		}
		if !j.inside {
			j.inside = true
			j.outline = append(j.outline, outline(value)...)
		}
		j.walk(value, j.list.inner)
		if j.twice {
			j.twice = false
			j.rows.reject("", []byte(j.rows.q.Name), feed.RejectTwice)
			continue
		}
		if err := j.rows.quote(j.cells); err != nil {
			return err
		}
	}
}

// walk fills the cells that value holds.
func (j *jsonReader) walk(value []byte, n *node) {
	if n.field != none {
		j.hit[n.field] = true
		j.twice = j.twice || j.cells[n.field].Kind != feed.Absent
		j.cells[n.field] = j.cell(value)
	}
	if n.each {
		j.twice = j.twice || j.nested != nil
		j.nested = value
	}
	if n.children == nil || value[0] != '{' {
		return
	}
	for c := feed.NewCursor(value); ; {
		name, member, ok := c.Member()
		if !ok {
			return
		}
		if child := n.child(j.unquote(name)); child != nil {
			j.walk(member, child)
		}
	}
}

// cell makes a cell of a value.
func (j *jsonReader) cell(value []byte) feed.Cell {
	switch value[0] {
	case '"':
		return feed.Cell{Kind: feed.Text, Text: j.unquote(value)}
	case 'n':
		return feed.Cell{Kind: feed.Null}
	case 't', 'f', '{', '[':
		return feed.Cell{Kind: feed.Other, Text: value}
	default:
		return feed.Cell{Kind: feed.Number, Text: value}
	}
}

// unquote is the function of that name, but puts what had escapes into scratch.
// What was put there before stays as it is, even when scratch grows.
func (j *jsonReader) unquote(quoted []byte) []byte {
	text, scratch := feed.AppendUnquote(j.scratch, quoted)
	j.scratch = scratch
	return text
}

// check tells a list whose fields are not what the configuration says from one
// that holds no prices.
func (j *jsonReader) check() error {
	if j.rows.quotes > 0 {
		return nil
	}
	var missing []string
	for i, hit := range j.hit {
		if !hit {
			missing = append(missing, j.list.fields[i])
		}
	}
	if j.rows.rows == 0 || missing == nil {
		return nil
	}
	return &malformed{fmt.Sprintf("no row has %s; the first one has %s", quoteSome(missing), quoteSome(j.outline))}
}

// outline names the members of a row, for messages.
func outline(value []byte) []string {
	names := []string{}
	if value[0] != '{' {
		return names
	}
	for c := feed.NewCursor(value); len(names) < maxShown; {
		name, _, ok := c.Member()
		if !ok {
			break
		}
		names = append(names, feed.Clip(feed.Unquote(name)))
	}
	return names
}
