package pricelist

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// path leads to a field: names of JSON members from the row inwards, or the name of a CSV
// column. An empty path is the value itself.
type path []string

var (
	errPathEscape = errors.New("invalid escape: use \\. and \\\\ in a path, ~0 and ~1 in a JSON pointer")
	errPathEmpty  = errors.New("a path must not hold an empty name: use a JSON pointer instead")
)

// parsePath reads "." (the value itself), a JSON pointer ("/a/b") or names
// joined by dots ("a.b"; "\." is a dot within a name).
func parsePath(text string) (path, error) {
	switch {
	case text == ".":
		return path{}, nil
	case strings.HasPrefix(text, "/"):
		return parsePointer(text)
	}
	var p path
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '.':
			p = append(p, name.String())
			name.Reset()
		case '\\':
			i++
			if i == len(text) || text[i] != '.' && text[i] != '\\' {
				return nil, errPathEscape
			}
			name.WriteByte(text[i])
		default:
			name.WriteByte(c)
		}
	}
	p = append(p, name.String())
	if slices.Contains(p, "") {
		return nil, errPathEmpty
	}
	return p, nil
}

func parsePointer(text string) (path, error) {
	p := path(strings.Split(text[1:], "/"))
	for i, name := range p {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(name)
		if strings.Contains(rest, "~") {
			return nil, errPathEscape
		}
		p[i] = strings.NewReplacer("~0", "~", "~1", "/").Replace(name)
	}
	return p, nil
}

// String returns the path in its configuration form.
func (p path) String() string {
	if len(p) == 0 {
		return "\".\""
	}
	return strconv.Quote(strings.Join(p, "."))
}

// within reports whether p is root or inside of it.
func (p path) within(root path) bool {
	return len(p) >= len(root) && slices.Equal(p[:len(root)], root)
}

// node is one step of all the paths into a row, so that one pass over a row reads all
// fields.
type node struct {
	field    int  // index of the field that ends here, or none
	each     bool // the nested array of quotes is here
	children []child
	byName   map[string]*node // children, if there are many
}

type child struct {
	name string
	node *node
}

// none marks a field that is not configured.
const none = -1

// fewChildren is the number of children up to which a linear search beats a map.
const fewChildren = 8

func newNode() *node { return &node{field: none} }

// child returns the node at a member, or nil.
func (n *node) child(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for i := range n.children {
		if n.children[i].name == string(name) {
			return n.children[i].node
		}
	}
	return nil
}

// reach returns the node at p and creates missing nodes.
func (n *node) reach(p path) *node {
	for _, name := range p {
		next := n.child([]byte(name))
		if next == nil {
			next = newNode()
			n.add(name, next)
		}
		n = next
	}
	return n
}

func (n *node) add(name string, next *node) {
	n.children = append(n.children, child{name, next})
	if len(n.children) <= fewChildren {
		return
	}
	if n.byName == nil {
		n.byName = map[string]*node{}
	}
	for _, c := range n.children {
		n.byName[c.name] = c.node
	}
}
