// Package apitest compares answers of the API with the OpenAPI document, for tests.
package apitest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Document is /openapi.json as a client reads it.
type Document map[string]any

// At walks down the document; it returns nil where there is nothing.
func At(value any, path ...string) any {
	for _, name := range path {
		switch v := value.(type) {
		case Document:
			value = v[name]
		case map[string]any:
			value = v[name]
		default:
			return nil
		}
	}
	return value
}

// Resolve returns what a reference names.
func (d Document) Resolve(ref string) any {
	return At(d, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

// Check returns what is wrong with a decoded value by its schema; more members
// than the schema has are wrong too.
func (d Document) Check(of any, value any, where string) []string {
	if ref, ok := At(of, "$ref").(string); ok {
		return d.Check(d.Resolve(ref), value, where)
	}
	if list, ok := At(of, "enum").([]any); ok && !slices.Contains(list, value) {
		return []string{fmt.Sprintf("%s: %v is none of %v", where, value, list)}
	}
	for _, combine := range []string{"oneOf", "anyOf"} {
		if all, ok := At(of, combine).([]any); ok {
			return d.checkAny(all, value, where)
		}
	}
	types := []string{}
	switch kind := At(of, "type").(type) {
	case nil:
		return nil
	case string:
		types = append(types, kind)
	case []any:
		for _, k := range kind {
			types = append(types, k.(string))
		}
	}
	if !slices.Contains(types, typeOf(value)) && !(typeOf(value) == "integer" && slices.Contains(types, "number")) {
		return []string{fmt.Sprintf("%s: %v is no %v", where, value, types)}
	}
	switch v := value.(type) {
	case map[string]any:
		return d.checkObject(of, v, where)
	case []any:
		var faults []string
		for i, element := range v {
			faults = append(faults, d.Check(At(of, "items"), element, where+"/"+strconv.Itoa(i))...)
		}
		return faults
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); At(of, "format") == "date-time" && (err != nil || !strings.HasSuffix(v, "Z")) {
			return []string{fmt.Sprintf("%s: %q is no time in UTC", where, v)}
		}
	}
	return nil
}

func (d Document) checkAny(all []any, value any, where string) []string {
	var faults []string
	for _, one := range all {
		found := d.Check(one, value, where)
		if len(found) == 0 {
			return nil
		}
		faults = append(faults, found...)
	}
	return faults
}

func (d Document) checkObject(of any, value map[string]any, where string) []string {
	var faults []string
	required, _ := At(of, "required").([]any)
	for _, name := range required {
		if _, there := value[name.(string)]; !there {
			faults = append(faults, fmt.Sprintf("%s: no %v", where, name))
		}
	}
	for name, member := range value {
		property := At(of, "properties", name)
		if property == nil {
			property = At(of, "additionalProperties")
		}
		if property == nil {
			faults = append(faults, where+": "+name+" is not described")
			continue
		}
		faults = append(faults, d.Check(property, member, where+"/"+name)...)
	}
	return faults
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
