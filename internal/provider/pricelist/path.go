package pricelist

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// path is the location of a field: the names of nested JSON members, or the name of a CSV
// column. The empty path refers to the whole value.
type path []string

var (
	errPathEscape = errors.New("invalid escape: use \\. and \\\\ in a path, ~0 and ~1 in a JSON pointer")
	errPathEmpty  = errors.New("path contains an empty name: use a JSON pointer instead")
)

// parsePath parses a path in one of three forms: "." for the whole value, a JSON pointer
// such as "/a/b", or names joined by dots such as "a.b". "\." is a dot within a name.
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

// String returns the quoted path for messages.
func (p path) String() string {
	if len(p) == 0 {
		return "\".\""
	}
	return strconv.Quote(strings.Join(p, "."))
}

// within reports whether p equals root or is inside of it.
func (p path) within(root path) bool {
	return len(p) >= len(root) && slices.Equal(p[:len(root)], root)
}

// node is a node in the tree of all configured paths. With the tree, the reader finds all
// fields in one pass over a row.
type node struct {
	field    int  // index of the field with this path, or none
	each     bool // whether this is the path of the nested array of quotes
	children []child
	byName   map[string]*node // the children if there are more than fewChildren, or nil
}

type child struct {
	name string
	node *node
}

// none is the index of a field that is not configured.
const none = -1

// fewChildren is the number of children up to which a linear search is faster than a map.
const fewChildren = 8

func newNode() *node { return &node{field: none} }

// child returns the child with a member name, or nil.
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

// reach returns the node at p. It creates the missing nodes.
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
