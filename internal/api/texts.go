package api

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

//go:embed openapi.txt
var textsFile string

// texts holds the descriptions in the OpenAPI document. The head of openapi.txt describes
// the file format.
type texts struct {
	tags       []tagText
	operations map[string]string // by method and path, such as "GET /docs"
	records    map[string]recordText
}

type tagText struct{ name, meaning string }

// recordText describes a struct.
type recordText struct {
	meaning    string
	properties map[string]propertyText
}

// propertyText describes a property of a struct.
type propertyText struct {
	words   string         // name of a list in words.go; empty: none
	example jsontext.Value // nil: use a default for the property's type
	meaning string
}

// readTexts parses the content of openapi.txt.
func readTexts(file string) (texts, error) {
	t := texts{operations: map[string]string{}, records: map[string]recordText{}}
	var record string
	for _, entry := range entries(file) {
		var err error
		if strings.HasPrefix(entry, " ") {
			err = t.records[record].add(strings.TrimSpace(entry))
		} else {
			record, err = t.open(entry)
		}
		if err != nil {
			return texts{}, err
		}
	}
	return t, nil
}

// entries splits a file into entries. It appends lines with an indent of more than two
// spaces to the previous entry. It drops comments and empty lines.
func entries(file string) []string {
	var all []string
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	for line := range strings.Lines(file) {
		line = strings.TrimRight(line, "\n")
		last := len(all) - 1
		switch {
		case line == "" || line[0] == '#':
		case indent(line) > 2 && last >= 0:
			all[last] += " " + strings.TrimSpace(line)
		default:
			all = append(all, line)
		}
	}
	return all
}

// open parses an entry that begins a tag, an operation or a record. It returns the name of
// the record, or an empty string for tags and operations.
func (t *texts) open(entry string) (record string, err error) {
	name, meaning, ok := strings.Cut(entry, ":")
	meaning = strings.TrimSpace(meaning)
	tag, isTag := strings.CutPrefix(name, "tag ")
	switch {
	case !ok:
		return "", fmt.Errorf("no colon in %q", entry)
	case isTag:
		t.tags = append(t.tags, tagText{tag, meaning})
	case strings.Contains(name, " /"):
		t.operations[name] = meaning
	default:
		if _, twice := t.records[name]; twice {
			return "", fmt.Errorf("%s occurs twice", name)
		}
		t.records[name] = recordText{meaning, map[string]propertyText{}}
		return name, nil
	}
	return "", nil
}

// add parses an entry of a property, `name (Words) example: meaning`. The words and the
// example are optional.
func (r recordText) add(entry string) error {
	end := strings.IndexAny(entry, " :")
	if end < 0 {
		return fmt.Errorf("no colon in %q", entry)
	}
	name, rest := entry[:end], strings.TrimPrefix(entry[end:], " ")
	var p propertyText
	if list, after, found := strings.Cut(rest, ")"); found && strings.HasPrefix(list, "(") {
		p.words, rest = list[1:], strings.TrimPrefix(after, " ")
	}
	if !strings.HasPrefix(rest, ":") {
		in := jsontext.NewDecoder(strings.NewReader(rest))
		example, err := in.ReadValue()
		if err != nil {
			return fmt.Errorf("the example of %q: %w", entry, err)
		}
		p.example, rest = example.Clone(), rest[in.InputOffset():]
	}
	var ok bool
	p.meaning, ok = strings.CutPrefix(rest, ": ")
	if _, twice := r.properties[name]; !ok || twice || p.meaning == "" {
		return fmt.Errorf("malformed or repeated property: %q", entry)
	}
	r.properties[name] = p
	return nil
}
