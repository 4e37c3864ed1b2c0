package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/fault"
	"assay/internal/once"
)

// describe writes the OpenAPI document of the operations.
func describe(operations []operation, version string) []byte {
	types := &schemas{components: map[string]schema{}}
	paths := map[string]map[string]any{}
	for _, op := range operations {
		if paths[op.path] == nil {
			paths[op.path] = map[string]any{}
		}
		paths[op.path][strings.ToLower(op.method)] = describeOperation(op, types)
	}
	types.of(fault.Problem{})
	document := map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Assay", "version": version,
			"description": "Keeps the prices of game items fresh. Times are RFC 3339 in UTC, amounts exact decimal numbers of the base currency. " +
				"Answers may gain members; ignore those that you do not know.",
		},
		"paths": paths,
		"components": map[string]any{
			"schemas": types.components,
			"securitySchemes": map[string]any{
				"marketSecret": schema{"type": "apiKey", "in": "header", "name": "x-market-sync-secret", "description": "The market sync secret, or the admin token."},
				"token":        schema{"type": "http", "scheme": "bearer", "description": "The platform token, or the admin token."},
				"adminToken":   schema{"type": "http", "scheme": "bearer", "description": "The admin token."},
			},
		},
	}
	text, err := json.Marshal(document, encoding(), jsontext.WithIndent(" "))
	if err != nil {
		panic("the OpenAPI document cannot be encoded: " + err.Error()) // it is made of this package's own constants
	}
	return text
}

func describeOperation(op operation, types *schemas) map[string]any {
	described := map[string]any{
		"operationId": operationID(op),
		"summary":     op.summary,
		"tags":        []string{tag(op.path)},
		"responses":   describeAnswers(op, types),
		"security":    security(op),
	}
	var params []schema
	for _, p := range op.params {
		params = append(params, describeParam(p))
	}
	if op.body != nil && op.body.key != noKey {
		params = append(params, describeKey(op.body.key))
	}
	if params != nil {
		described["parameters"] = params
	}
	if op.body != nil {
		described["requestBody"] = schema{
			"required": !op.body.optional,
			"content":  content("application/json", types.of(op.body.like)),
		}
	}
	return described
}

func describeParam(p param) schema {
	of := p.schema
	if p.preset != "" {
		of = maps.Clone(p.schema)
		of["default"] = p.preset
		if p.schema["type"] == "integer" {
			n, _ := strconv.ParseInt(p.preset, 10, 64) // number made it
			of["default"] = n
		}
	}
	return schema{"name": p.name, "in": p.in, "required": p.in == "path", "description": p.doc, "schema": of}
}

func describeKey(rule keyRule) schema {
	return schema{
		"name": keyHeader, "in": "header", "required": rule == keyRequired, "schema": schema{"type": "string", "minLength": 1, "maxLength": once.MaxKey},
		"description": "Any text that is new for each thing to be done. The same request with the same key is carried out once, and answered alike.",
	}
}

func describeAnswers(op operation, types *schemas) map[string]schema {
	responses := map[string]schema{}
	for status, value := range op.answers {
		response := schema{"description": http.StatusText(status)}
		switch value := value.(type) {
		case nil:
		case media:
			response["content"] = content(string(value), schema{})
		default:
			response["content"] = content("application/json", types.of(value))
		}
		responses[strconv.Itoa(status)] = response
	}
	for _, status := range op.problems() {
		responses[strconv.Itoa(status)] = schema{
			"description": http.StatusText(status),
			"content":     content("application/problem+json", types.of(fault.Problem{})),
		}
	}
	return responses
}

func content(mediaType string, of schema) schema {
	return schema{mediaType: schema{"schema": of}}
}

// problems returns the statuses of all problems that an operation can answer:
// its own and those of everything before it.
func (op operation) problems() []int {
	statuses := append([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, op.faults...)
	if op.access != nil {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusTooManyRequests)
	}
	if op.access != nil && !(slices.Contains(op.access, Market) && slices.Contains(op.access, Platform)) {
		statuses = append(statuses, http.StatusForbidden) // there is a role that it is not for
	}
	if op.body != nil {
		statuses = append(statuses, http.StatusUnsupportedMediaType)
	}
	if op.body != nil && op.body.key != noKey {
		statuses = append(statuses, http.StatusConflict, http.StatusUnprocessableEntity)
	}
	if slices.ContainsFunc(op.params, func(p param) bool { return p.ofUser }) {
		statuses = append(statuses, http.StatusUnprocessableEntity) // a reserved id
	}
	slices.Sort(statuses)
	return statuses
}

// security lists the alternatives of credentials, an empty one for none.
func security(op operation) []map[string][]string {
	none := []string{}
	alternatives := []map[string][]string{}
	for _, role := range op.access {
		switch role {
		case Market:
			alternatives = append(alternatives, map[string][]string{"marketSecret": none})
		case Platform:
			alternatives = append(alternatives, map[string][]string{"token": none})
		case local:
			alternatives = append(alternatives, map[string][]string{})
		}
	}
	if op.access != nil {
		alternatives = append(alternatives, map[string][]string{"adminToken": none})
	}
	return alternatives
}

// operationID makes a name of method and path: getMarketPricesJobsId.
func operationID(op operation) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(op.method))
	word := func(c rune) bool { return strings.ContainsRune("/{}-._", c) }
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(op.path, "/api"), word) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String()
}

// tag groups operations by the first part of their path.
func tag(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/functions/admin"), "/"), "/")
	switch first {
	case "health", "metrics", "openapi.json", "docs":
		return "server"
	default:
		return first
	}
}
