package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"assay/internal/money"
)

// schema is a JSON schema of the dialect of OpenAPI 3.1.
type schema map[string]any

// oneOf stands, in the route table, for a value of any of the types.
type oneOf []any

// media stands, in the route table, for an answer of that type that is no JSON
// of a Go type.
type media string

// schemas makes schemas of Go types as they are encoded. Structs become
// components, which the others refer to.
type schemas struct {
	components map[string]schema
}

// of returns the schema of a value's type.
func (s *schemas) of(value any) schema {
	alternatives, ok := value.(oneOf)
	if !ok {
		return s.ofType(reflect.TypeOf(value))
	}
	var all []schema
	for _, v := range alternatives {
		all = append(all, s.of(v))
	}
	return schema{"oneOf": all}
}

func (s *schemas) ofType(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return schema{"type": "object", "additionalProperties": schema{}}
	case reflect.TypeFor[money.Micro](), reflect.TypeFor[money.Sum]():
		return schema{"type": "number", "description": "An exact decimal number of at most six places."}
	case reflect.TypeFor[money.Rate]():
		return schema{"type": "number", "description": "An exact decimal number of at most twelve places."}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.ofType(t.Elem()))
	case reflect.Slice:
		return schema{"type": "array", "items": s.ofType(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.ofType(t.Elem())}
	case reflect.Struct:
		return s.component(t)
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Interface:
		return schema{}
	default:
		return schema{"type": "integer"}
	}
}

func nullable(of schema) schema {
	if kind, ok := of["type"].(string); ok {
		of["type"] = []string{kind, "null"}
		return of
	}
	return schema{"anyOf": []schema{of, {"type": "null"}}}
}

// component returns a reference to a struct's schema.
func (s *schemas) component(t reflect.Type) schema {
	name := componentName(t)
	if _, known := s.components[name]; !known {
		object := schema{"type": "object"}
		s.components[name] = object // before its fields, which may refer to it
		properties, required := map[string]schema{}, []string{}
		s.fields(t, properties, &required)
		object["properties"], object["required"] = properties, required
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

// fields adds a struct's fields, those of embedded structs among them. What may
// be left out is not required.
func (s *schemas) fields(t reflect.Type, properties map[string]schema, required *[]string) {
	for field := range t.Fields() {
		tag, tagged := field.Tag.Lookup("json")
		if field.Anonymous && !tagged {
			s.fields(field.Type, properties, required)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		property := s.ofType(field.Type)
		if format := field.Tag.Get("format"); format != "" {
			property["format"] = format
		}
		if doc := field.Tag.Get("doc"); doc != "" {
			property["description"] = doc
		}
		properties[name] = property
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// componentName makes a name of a type's: Page[view.Job] is PageOfJob.
func componentName(t reflect.Type) string {
	outer, inner, generic := strings.Cut(t.Name(), "[")
	name := strings.ToUpper(outer[:1]) + outer[1:]
	if !generic {
		return name
	}
	return name + "Of" + inner[strings.LastIndexByte(inner, '.')+1:len(inner)-1]
}
