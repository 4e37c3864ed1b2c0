package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/api/apitest"
	"assay/internal/apikey"
	"assay/internal/fault"
	"assay/internal/inventory"
)

// document is the OpenAPI document that the server serves.
type document struct{ *apitest.Document }

func (h *harness) document() document {
	h.t.Helper()
	got := h.request("GET", "/openapi.json", "")
	d, err := apitest.Read([]byte(got.body))
	if err != nil || got.Header.Get("Content-Type") != "application/json" {
		h.t.Fatalf("openapi.json: got error %v, want a JSON document: %s", err, got.body)
	}
	return document{d}
}

func TestOpenAPI_DescribesEveryParameter(t *testing.T) {
	h := startServer(t, nil)
	d := h.document()
	for _, op := range h.api.routes.operations {
		described, _ := d.At("paths", op.path, strings.ToLower(op.method), "parameters").([]any)
		var names []string
		for _, p := range described {
			names = append(names, apitest.At(p, "in").(string)+" "+apitest.At(p, "name").(string))
		}
		for _, p := range op.params {
			if !slices.Contains(names, p.in+" "+p.name) {
				t.Errorf("%s %s: the parameter %s is not described", op.method, op.path, p.name)
			}
		}
		for segment := range strings.SplitSeq(op.path, "/") {
			if name, ok := paramName(segment); ok && !slices.Contains(names, "path "+name) {
				t.Errorf("%s %s: the parameter %s of the path is not declared", op.method, op.path, name)
			}
		}
	}
	if got := d.At("paths", "/api/market-prices/jobs", "get", "parameters"); !strings.Contains(fmt.Sprint(got), "default:100") {
		t.Errorf("got parameters %v, want limit with the default 100", got)
	}
}

// TestOpenAPI_EveryRouteHasExampleErrorsAndScope checks what a client needs to know about a route:
// an example of each response and body, the problem codes, and the scope of API keys.
func TestOpenAPI_EveryRouteHasExampleErrorsAndScope(t *testing.T) {
	h := startServer(t, nil)
	d := h.document()
	for _, op := range h.api.routes.operations {
		name := op.method + " " + op.path
		described := d.At("paths", op.path, strings.ToLower(op.method))
		hasExample := func(where string, content any) {
			all, _ := content.(map[string]any)
			for media, of := range all {
				if apitest.At(of, "example") == nil && apitest.At(of, "examples") == nil {
					t.Errorf("%s: %s as %s has no example", name, where, media)
				}
			}
		}
		hasExample("the body", apitest.At(described, "requestBody", "content"))
		codes := 0
		responses, _ := apitest.At(described, "responses").(map[string]any)
		for status, response := range responses {
			if ref, ok := apitest.At(response, "$ref").(string); ok {
				response = d.At(apitest.Path(ref)...)
			}
			hasExample("the response "+status, apitest.At(response, "content"))
			if status < "400" {
				continue
			}
			if code, _ := apitest.At(response, "content", problemType, "example", "code").(string); !slices.Contains(problemCodes(), code) && op.path != "/api/health" {
				t.Errorf("%s: the response %s has the problem code %q, want one of the documented codes", name, status, code)
			}
			codes++
		}
		if codes < 3 { // invalid parameters, another method, a large body
			t.Errorf("%s: got %d problems, want at least 3", name, codes)
		}
		scope, _ := apitest.At(described, "x-scope").(string)
		public := op.access == nil || tag(op.path) == "operators"
		if (scope == "") != public || scope != "" && !slices.Contains(apikey.Scopes(), scope) {
			t.Errorf("%s: got the scope %q, want one of %v, or none if the route is public: %t", name, scope, apikey.Scopes(), public)
		}
		if security := fmt.Sprint(apitest.At(described, "security")); strings.Contains(security, "apiKey") == public {
			t.Errorf("%s: got the credentials %s, want an API key: %t", name, security, !public)
		}
	}
}

// TestOpenAPI_ErrorExamplesFitTheirStatus compares the example of each problem with its status and the
// list of codes.
func TestOpenAPI_ErrorExamplesFitTheirStatus(t *testing.T) {
	d := startServer(t, nil).document()
	statuses := problemStatuses(t)
	responses, _ := d.At("components", "responses").(map[string]any)
	details := map[string]string{}
	for name, response := range responses {
		text, _ := json.Marshal(apitest.At(response, "content", problemType, "example"))
		var p fault.Problem
		if err := json.Unmarshal(text, &p); err != nil || p.Detail == "" || p.Title != http.StatusText(p.Status) || problemName(p.Status) != name || statuses[p.Code] != p.Status {
			t.Errorf("%s: got error %v and the example %s, want the status, title, code and detail of this problem", name, err, text)
		}
		if hasErrors := p.Errors != nil; hasErrors != (p.Code == "invalid_parameters") || (p.Change != "") != (p.Code == "cursor_expired") {
			t.Errorf("%s: got the example %s, want errors only for invalid_parameters and change only for cursor_expired", name, text)
		}
		if other := details[p.Detail]; other != "" {
			t.Errorf("%s and %s have the same detail %q, want different ones", name, other, p.Detail)
		}
		details[p.Detail] = name
	}
	if len(details) < 15 {
		t.Errorf("got %d examples, want at least 15", len(details))
	}
}

// TestOpenAPI_IntegersAreInt64 checks all schemas of the document, including those of
// parameters and headers.
func TestOpenAPI_IntegersAreInt64(t *testing.T) {
	integers := 0
	var look func(where string, node any)
	look = func(where string, node any) {
		switch node := node.(type) {
		case []any:
			for i, child := range node {
				look(fmt.Sprint(where, "/", i), child)
			}
		case map[string]any:
			kinds, _ := node["type"].([]any)
			if node["type"] == "integer" || slices.Contains(kinds, any("integer")) {
				integers++
				if node["format"] != "int64" {
					t.Errorf("%s: got format %v, want int64", where, node["format"])
				}
			}
			for name, child := range node {
				if name != "example" && name != "examples" {
					look(where+"/"+name, child)
				}
			}
		}
	}
	look("", startServer(t, nil).document().At())
	if integers < 100 {
		t.Errorf("got %d integers, want at least 100", integers)
	}
}

func TestOpenAPI_HasUniqueOperationIDs(t *testing.T) {
	ids := map[string]bool{}
	for _, op := range startServer(t, nil).api.routes.operations {
		id := operationID(op)
		if ids[id] || !regexp.MustCompile(`^[a-zA-Z]+$`).MatchString(id) {
			t.Errorf("got operation id %q, want a unique id of letters", id)
		}
		ids[id] = true
	}
}

// TestOpenAPI_DescribesBodiesAsDecoded decodes each body with all members of its schema,
// and then without each member. Only required members may be reported as missing.
func TestOpenAPI_DescribesBodiesAsDecoded(t *testing.T) {
	d := startServer(t, nil).document()
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	readers := map[string]func(io.Reader) error{
		"PushBody":   func(r io.Reader) error { _, err := inventory.DecodePush(r, now); return err },
		"UserBody":   func(r io.Reader) error { _, err := decodeUser(r); return err },
		"LookupBody": func(r io.Reader) error { _, _, err := decodeLookup(r); return err },
	}
	samples := map[string]any{
		"snapshotAt": now.Format(time.RFC3339), "steamId": "76561198000000001", "phase": "Ruby",
	}
	for name, read := range readers {
		full := d.sample(d.At("components", "schemas", name), "", samples).(map[string]any)
		encoded := func() io.Reader { text, _ := json.Marshal(full); return strings.NewReader(string(text)) }
		if err := read(encoded()); err != nil {
			t.Errorf("%s with all members: got %v, want no error", name, err)
		}
		required, _ := d.At("components", "schemas", name, "required").([]any)
		for member := range maps.Clone(full) {
			value := full[member]
			delete(full, member)
			if err := read(encoded()); (err != nil) != slices.Contains(required, any(member)) {
				t.Errorf("%s without %s: got error %v, want one only without one of the required members %v", name, member, err, required)
			}
			full[member] = value
		}
	}
}

// sample returns a value that matches a schema.
func (d document) sample(of any, name string, samples map[string]any) any {
	if value, ok := samples[name]; ok {
		return value
	}
	if ref, ok := apitest.At(of, "$ref").(string); ok {
		return d.sample(d.At(apitest.Path(ref)...), name, samples)
	}
	switch apitest.At(of, "type") {
	case "object":
		object := map[string]any{}
		for property, schema := range apitest.At(of, "properties").(map[string]any) {
			object[property] = d.sample(schema, property, samples)
		}
		return object
	case "array":
		return []any{d.sample(apitest.At(of, "items"), "", samples)}
	case "integer":
		return 1
	case "boolean":
		return true
	default:
		return "x"
	}
}

func TestDocs_LoadNothingFromOtherHosts(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("GET", "/docs", "")
	if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("got status %d, %v; want 200 and HTML", got.StatusCode, got.Header)
	}
	if found := regexp.MustCompile(`https?:|//[a-z]|<script|url\(|@import|style="`).FindString(got.body); found != "" {
		t.Errorf("the page contains %q, which its policy forbids", found)
	}
	_, style, _ := strings.Cut(got.body, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) {
		t.Errorf("the policy %s does not allow the page's style", policy)
	}
	for _, op := range h.api.routes.operations {
		if !strings.Contains(got.body, "<code>"+op.path+"</code>") {
			t.Errorf("%s is not on the page", op.path)
		}
	}
}
