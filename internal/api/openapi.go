package api

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/idempotency"
)

// describe returns the OpenAPI document of the operations as JSON.
func describe(types *schemas, operations []operation, version string) []byte {
	paths := map[string]map[string]any{}
	for _, op := range operations {
		if paths[op.path] == nil {
			paths[op.path] = map[string]any{}
		}
		paths[op.path][strings.ToLower(op.method)] = describeOperation(op, types)
	}
	problems := describeProblems(types)
	text, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": schema{
			"title": "Assay", "version": version, "description": introduction,
			"license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"contact": schema{"name": "The operator of this server"},
		},
		"servers": []schema{
			{"url": "/", "description": "The server that serves this document."},
			{"url": "http://127.0.0.1:8080", "description": "The default of LISTEN_ADDR."},
		},
		"tags":  describeTags(types.texts, operations),
		"paths": paths,
		"components": schema{
			"responses": problems, "headers": describeHeaders(), "schemas": types.components,
			"securitySchemes": schema{
				"marketSecret": schema{"type": "apiKey", "in": "header", "name": "x-market-sync-secret", "description": "The market sync secret, or the admin token."},
				"token":        schema{"type": "http", "scheme": "bearer", "description": "The platform token, or the admin token."},
				"adminToken":   schema{"type": "http", "scheme": "bearer", "description": "The admin token."},
				"apiKey":       schema{"type": "http", "scheme": "bearer", "description": "An API key with the scope that the operation names. A write scope includes the read scope."},
			},
		},
	}, encoding(), jsontext.WithIndent(" "))
	if err != nil {
		panic("encode the OpenAPI document: " + err.Error()) // all inputs are constants of this package
	}
	return text
}

// introduction describes the whole API.
const introduction = "Assay keeps the prices of game items up to date. Times are RFC 3339 in UTC, and ids are strings. " +
	"Market prices are exact decimal numbers with at most six decimal places. Read them as 64-bit floating point numbers or as decimals; 32-bit numbers lose digits. " +
	"Where money moves, amounts are whole minor units (cents), or there is a second member with the same amount as a decimal string (its name ends in Decimal). " +
	"Changes are backward compatible: responses may gain members, and enumerations may gain values. Ignore unknown ones."

func describeTags(t texts, operations []operation) []schema {
	var all []schema
	for _, described := range t.tags {
		if slices.ContainsFunc(operations, func(op operation) bool { return tag(op.path) == described.name }) {
			all = append(all, schema{"name": described.name, "description": described.meaning})
		}
	}
	return all
}

func describeOperation(op operation, types *schemas) map[string]any {
	meaning := types.texts.operations[op.method+" "+op.path]
	if meaning == "" {
		types.faults = append(types.faults, op.method+" "+op.path+" has no text")
	}
	described := map[string]any{
		"operationId": operationID(op),
		"summary":     op.summary,
		"description": meaning,
		"tags":        []string{tag(op.path)},
		"responses":   describeResponses(op, types),
		"security":    security(op),
	}
	var params []schema
	for _, p := range op.params {
		params = append(params, describeParam(p))
	}
	if scope := op.scope(); scope != "" { // only OAuth schemes may list scopes under security
		described["x-scope"] = scope
		described["description"] = meaning + " API keys need the scope `" + scope + "`."
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
			"content":  schema{jsonType: describeContent(types.of(op.body.like), types)},
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
			n, _ := strconv.ParseInt(p.preset, 10, 64) // the default of an integer parameter is valid
			of["default"] = n
		}
	}
	return schema{"name": p.name, "in": p.in, "required": p.in == "path", "description": p.doc, "schema": of}
}

func describeKey(rule keyRule) schema {
	return schema{
		"name": keyHeader, "in": "header", "required": rule == keyRequired, "schema": schema{"type": "string", "minLength": 1, "maxLength": idempotency.MaxKey},
		"description": "A unique value per operation; reuse it when you retry. Requests with the same key are executed once and get the same response.",
	}
}

func describeResponses(op operation, types *schemas) map[string]schema {
	responses := map[string]schema{}
	for _, status := range op.problems() {
		responses[strconv.Itoa(status)] = reference("responses", problemName(status))
	}
	for status, value := range op.responses {
		response := schema{"description": http.StatusText(status), "headers": references(op.headers(status))}
		switch value := value.(type) {
		case nil:
		case media:
			response["content"] = schema{string(value): schema{"schema": schema{}, "example": mediaExamples()[value]}}
		default:
			response["content"] = schema{jsonType: describeContent(types.of(value), types)}
		}
		responses[strconv.Itoa(status)] = response
	}
	return responses
}

// mediaExamples returns examples of responses that have no Go type.
func mediaExamples() map[media]any {
	const price = `{"appId":730,"marketHashName":"AK-47 | Redline (Field-Tested)","phase":"","currentPrice":27.275,"currentPriceDecimal":"27.275",` +
		`"priceStatus":"ok","priceUpdatedAt":"2026-11-20T06:00:00Z","priceCheckedAt":"2026-11-20T06:00:00Z"}`
	return map[media]any{
		ndjsonType:   price + "\n",
		streamType:   "id: 1774000000000830\nevent: price.changed\ndata: {\"items\":[{\"change\":\"1774000000000830\"," + price[1:] + "]}\n\n",
		"text/plain": "# TYPE assay_items_in_scope gauge\nassay_items_in_scope 28800\n",
		"text/html":  "<!doctype html>",
		jsonType:     schema{"openapi": "3.1.0", "info": schema{"title": "Assay"}},
	}
}

// describeContent returns a schema with its example, or with one example per alternative.
func describeContent(of schema, types *schemas) schema {
	alternatives, ok := of["oneOf"].([]schema)
	if !ok {
		return schema{"schema": of, "example": types.exampleOf(of)}
	}
	examples := schema{}
	for _, one := range alternatives {
		examples[strings.TrimPrefix(one["$ref"].(string), "#/components/schemas/")] = schema{"value": types.exampleOf(one)}
	}
	return schema{"schema": of, "examples": examples}
}

// problemExamples returns an example of a problem of each status.
func problemExamples() []fault.Problem {
	invalid := fault.New(fault.Invalid, "invalid_parameters", invalidParams)
	invalid.Fields = []fault.Field{{Pointer: "/query/limit", Detail: "must be a whole number from 1 to 1000"}}
	expired := fault.New(fault.Expired, "cursor_expired", "This change number has expired or is unknown. Read a snapshot and continue after its change number. The last change is 1774000000000812.")
	expired.Change = "1774000000000812"
	var all []fault.Problem
	for _, err := range []error{
		invalid, unauthorized(), noAccess(), catalog.Key{AppID: catalog.CS2}.NotFound(), notAllowed([]string{http.MethodGet, http.MethodHead}),
		os.ErrDeadlineExceeded, // the body
		fault.New(fault.Conflict, "snapshot_outdated", "The stored inventory is newer (2026-11-21T06:00:00Z). Send a newer snapshot."),
		expired, &http.MaxBytesError{Limit: maxBody}, checkMedia(http.Header{}), keyReused(), tooManyFailures(time.Minute),
		errors.New("an error without a fault"),
		fault.New(fault.Upstream, "fee_rules_unreachable", "The fee rules cannot be read: status 404. The active rules are unchanged."),
		fault.New(fault.Unavailable, "database_unavailable", "The database is temporarily unavailable; try again later."),
	} {
		p, _, _ := explain(err)
		all = append(all, p)
	}
	return all
}

// describeProblems returns the OpenAPI responses of all problems by name.
func describeProblems(types *schemas) map[string]schema {
	of := types.of(fault.Problem{})
	all := map[string]schema{}
	for _, p := range problemExamples() {
		example := maps.Clone(types.exampleOf(of))
		example["status"], example["title"], example["code"], example["detail"] = p.Status, http.StatusText(p.Status), p.Code, p.Detail
		if example["errors"] = p.Errors; p.Errors == nil {
			delete(example, "errors")
		}
		if example["change"] = p.Change; p.Change == "" {
			delete(example, "change")
		}
		all[problemName(p.Status)] = schema{
			"description": http.StatusText(p.Status),
			"headers":     references(problemHeaders(p.Status)),
			"content":     schema{problemType: schema{"schema": of, "example": example}},
		}
	}
	return all
}

// problemName returns the component name of a status, such as NotFound.
func problemName(status int) string {
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// problems returns the statuses of all problems of an operation, including the problems of the
// checks that run before the handler.
func (op operation) problems() []int {
	statuses := append([]int{http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge}, op.faults...)
	if op.access != nil {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	}
	if op.body != nil {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusUnsupportedMediaType)
	}
	if op.body != nil && op.body.key != noKey {
		statuses = append(statuses, http.StatusConflict, http.StatusUnprocessableEntity)
	}
	if slices.ContainsFunc(op.params, func(p param) bool { return p.ofUser }) {
		statuses = append(statuses, http.StatusUnprocessableEntity) // for a reserved user id
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// security lists the alternative credentials of an operation. An empty alternative means
// that no credential is required.
func security(op operation) []map[string][]string {
	none := []string{}
	if op.path == "/api/health" { // public, with details for an admin
		return []map[string][]string{{}, {"adminToken": none}}
	}
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
	if op.scope() != "" {
		alternatives = append(alternatives, map[string][]string{"apiKey": none})
	}
	return alternatives
}

// operationID returns an id built from the method and the path, such as getMarketPricesJobsId.
func operationID(op operation) string {
	var id strings.Builder
	id.WriteString(strings.ToLower(op.method))
	word := func(c rune) bool { return strings.ContainsRune("/{}-._", c) }
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(op.path, "/api"), word) {
		id.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return id.String()
}

// tag returns the tag of a path. It is the first segment after the common prefixes.
func tag(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/functions/admin"), "/"), "/")
	switch first {
	case "health", "metrics", "openapi.json", "docs":
		return "server"
	default:
		return first
	}
}
