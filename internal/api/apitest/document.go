// Package apitest checks API responses against the OpenAPI document in tests.
package apitest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is a parsed OpenAPI document.
type Document struct {
	root    any
	schemas *jsonschema.Compiler
}

const address = "openapi.json"

// Read parses a document.
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

// closeObjects changes all object schemas to forbid unknown members. The document itself
// allows them, so that clients accept members that later versions add.
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

// At returns the value at a path of the document, or nil if the path does not exist.
func (d *Document) At(path ...string) any { return At(d.root, path...) }

// At returns the value at a path below value, or nil if the path does not exist.
func At(value any, path ...string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// Path converts a reference such as "#/components/schemas/Job" to a path.
func Path(ref string) []string { return strings.Split(strings.TrimPrefix(ref, "#/"), "/") }

// Check validates a decoded JSON value against the schema at a path. Members that the
// schema does not define are errors.
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
