package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// schema is a JSON schema in the dialect of OpenAPI 3.1.
type schema map[string]any

// oneOf is an entry of responseTypes for a response with several possible types. The keys
// are the values of the property reason.
type oneOf map[string]any

// media is an entry of responseTypes for a response that has a media type and no Go type.
type media string

// schemas converts Go types to JSON schemas. Structs and enumerations become components.
type schemas struct {
	texts      texts
	words      map[string][]string
	components map[string]schema
	examples   map[string]map[string]any // examples of structs by component name
	faults     []string                  // errors, such as properties without a description
	used       map[string]bool           // used texts by record and property
}

func newSchemas() *schemas {
	texts, err := readTexts(textsFile)
	if err != nil {
		panic("openapi.txt: " + err.Error()) // the file is embedded
	}
	return &schemas{texts: texts, words: wordLists(), components: map[string]schema{}, examples: map[string]map[string]any{}, used: map[string]bool{}}
}

// of returns the schema of a value's type.
func (s *schemas) of(value any) schema {
	alternatives, ok := value.(oneOf)
	if !ok {
		return s.ofType(reflect.TypeOf(value))
	}
	var all []schema
	mapping := map[string]string{}
	for _, word := range slices.Sorted(maps.Keys(alternatives)) {
		one := s.of(alternatives[word])
		all = append(all, one)
		mapping[word] = one["$ref"].(string) // every alternative is a struct, so its schema is a reference
	}
	return schema{"oneOf": all, "discriminator": schema{"propertyName": "reason", "mapping": mapping}}
}

func (s *schemas) ofType(t reflect.Type) schema {
	switch t {
	case reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return schema{"type": "object", "additionalProperties": schema{}}
	case reflect.TypeFor[money.Micro](), reflect.TypeFor[money.Sum](), reflect.TypeFor[money.Rate]():
		return schema{"type": "number", "format": "double"}
	case reflect.TypeFor[money.Decimal]():
		return schema{"type": "string", "format": "decimal"}
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
	case reflect.Float64:
		return schema{"type": "number", "format": "double"}
	case reflect.Interface:
		return schema{}
	default:
		return schema{"type": "integer", "format": "int64"}
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
		object := schema{"type": "object", "description": s.texts.records[name].meaning}
		s.components[name] = object // added first, because the fields can refer to it
		r := record{name: name, properties: map[string]schema{}, required: []string{}, example: map[string]any{}}
		s.fields(t, &r)
		object["properties"], object["required"] = r.properties, r.required
		s.examples[name] = r.example
		if object["description"] == "" {
			s.faults = append(s.faults, name+" has no meaning")
		}
	}
	return reference("schemas", name)
}

func reference(of, name string) schema { return schema{"$ref": "#/components/" + of + "/" + name} }

// record is the schema of a struct under construction.
type record struct {
	name       string
	properties map[string]schema
	required   []string
	example    map[string]any
}

// fields adds the fields of a struct and of its embedded structs to a record. Fields with
// omitempty or omitzero are not required.
func (s *schemas) fields(t reflect.Type, r *record) {
	for field := range t.Fields() {
		tag, tagged := field.Tag.Lookup("json")
		if field.Anonymous && !tagged {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			s.fields(embedded, r)
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
		text := s.text(r.name, componentName(t), name)
		if text.words != "" {
			property = s.wordsOf(property, text.words)
		}
		property["description"] = text.meaning
		if example := s.example(field.Type, property, text); example != nil {
			property["examples"], r.example[name] = []any{example}, example
		} else {
			s.faults = append(s.faults, r.name+"."+name+" has no example")
		}
		r.properties[name] = property
		if !strings.Contains(options, "omit") {
			r.required = append(r.required, name)
		}
	}
}

// text returns the text of a property. It searches the record, then the struct that declares the
// property, then the record *.
func (s *schemas) text(record, declared, name string) propertyText {
	for _, r := range []string{record, declared, "*"} {
		if p, ok := s.texts.records[r].properties[name]; ok {
			s.used[r+"."+name] = true
			return p
		}
	}
	s.faults = append(s.faults, record+"."+name+" has no text")
	return propertyText{}
}

// wordsOf converts the schema of a string property to an enumeration.
func (s *schemas) wordsOf(of schema, list string) schema {
	if s.words[list] == nil {
		s.faults = append(s.faults, "words.go has no list "+list)
	}
	s.components[list] = schema{"type": "string", "enum": s.words[list]}
	words := reference("schemas", list)
	switch kind := of["type"].(type) {
	case []string:
		return nullable(words)
	case string:
		if kind == "array" {
			of["items"] = words
			return of
		}
	}
	return words
}

// example returns an example of a property: the example in its text, or a default for its type.
func (s *schemas) example(t reflect.Type, of schema, text propertyText) any {
	if text.example != nil {
		return text.example
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case of["format"] == "date-time":
		return "2026-11-21T06:00:00Z"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return []any{s.examples[componentName(t.Elem())]}
	case t.Kind() == reflect.Struct:
		return s.examples[componentName(t)]
	}
	return nil
}

// exampleOf returns the example of a referenced schema, or nil if there is none.
func (s *schemas) exampleOf(of schema) map[string]any {
	ref, _ := of["$ref"].(string)
	return s.examples[strings.TrimPrefix(ref, "#/components/schemas/")]
}

// componentName returns the component name of a type. For Page[view.Job], it is PageOfJob.
func componentName(t reflect.Type) string {
	outer, inner, generic := strings.Cut(t.Name(), "[")
	name := strings.ToUpper(outer[:1]) + outer[1:]
	if !generic {
		return name
	}
	return name + "Of" + inner[strings.LastIndexByte(inner, '.')+1:len(inner)-1]
}
