// Package apitest compares answers of the API with the OpenAPI document, for tests.
package apitest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is /openapi.json as a client reads it.
type Document struct {
	root    any
	schemas *jsonschema.Compiler
}

const address = "openapi.json"

// Read reads a document.
func Read(text []byte) (*Document, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	closed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	closeObjects(closed)
	d := &Document{root: root, schemas: jsonschema.NewCompiler()}
	d.schemas.AssertFormat()
	d.schemas.RegisterFormat(&jsonschema.Format{Name: "date-time", Validate: checkUTC})
	return d, d.schemas.AddResource(address, closed)
}

// closeObjects forbids members that an object's schema does not name. The document itself
// allows them, so that clients accept the members of later versions.
func closeObjects(node any) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	case map[string]any:
		for name, child := range node {
			if name != "example" && name != "examples" {
				closeObjects(child)
			}
		}
		if _, open := node["additionalProperties"]; !open && node["type"] == "object" && node["properties"] != nil {
			node["additionalProperties"] = false
		}
	}
}

func checkUTC(value any) error {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
		return err
	}
	if !strings.HasSuffix(text, "Z") {
		return fmt.Errorf("%s is not in UTC", text)
	}
	return nil
}

// At walks down the document; it returns nil where there is nothing.
func (d *Document) At(path ...string) any { return At(d.root, path...) }

// At walks down a part of a document; it returns nil where there is nothing.
func At(value any, path ...string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// Path returns the path that a reference names.
func Path(ref string) []string { return strings.Split(strings.TrimPrefix(ref, "#/"), "/") }

// Check compares a decoded value with the schema at a path. Members that the schema does
// not name are an error too.
func (d *Document) Check(value any, path ...string) error {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	names := []string{address + "#"}
	for _, name := range path {
		names = append(names, escape.Replace(name))
	}
	schema, err := d.schemas.Compile(strings.Join(names, "/"))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
