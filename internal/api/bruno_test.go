package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// brunoDir is the directory of the request collection for Bruno, an API client.
const brunoDir = "../../client/bruno"

// described is the part of the OpenAPI document that a collection needs.
type described struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Summary     string `json:"summary"`
		Description string `json:"description"`
		Tags        []string
		Security    []map[string][]string `json:"security"`
		Parameters  []struct {
			Name, In string
			Required bool
			Schema   struct {
				Default any   `json:"default"`
				Enum    []any `json:"enum"`
			}
		}
		RequestBody *struct {
			Content map[string]struct {
				Example json.RawMessage `json:"example"`
			}
		} `json:"requestBody"`
	}
}

// brunoCredential returns the parts of a Bruno request that authenticate it. It uses the first
// security scheme of the operation in the document.
func brunoCredential(security []map[string][]string) (kind, headers, section string) {
	if len(security) > 0 {
		for scheme := range security[0] {
			switch scheme {
			case "marketSecret":
				return "none", "  x-market-sync-secret: {{marketSecret}}\n", ""
			case "token":
				return "bearer", "", "auth:bearer {\n  token: {{platformToken}}\n}\n\n"
			case "adminToken":
				return "bearer", "", "auth:bearer {\n  token: {{adminToken}}\n}\n\n"
			}
		}
	}
	return "none", "", ""
}

// brunoRequests returns the content of a Bruno file for each operation, by path.
func brunoRequests(t *testing.T, document []byte) map[string]string {
	t.Helper()
	var all described
	if err := json.Unmarshal(document, &all); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	sequence := map[string]int{} // by folder
	for _, path := range slices.Sorted(maps.Keys(all.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(all.Paths[path])) {
			op := all.Paths[path][method]
			sequence[op.Tags[0]]++
			kind, headers, credential := brunoCredential(op.Security)
			var query, segments string
			for _, p := range op.Parameters {
				value := ""
				switch {
				case p.Schema.Default != nil:
					value = fmt.Sprint(p.Schema.Default)
				case len(p.Schema.Enum) > 0:
					value = fmt.Sprint(p.Schema.Enum[0])
				}
				switch p.In {
				case "query": // Bruno does not send a parameter with a leading ~
					query += "  " + strings.TrimSuffix("~"+p.Name+": "+value, " ") + "\n"
				case "path":
					segments += "  " + p.Name + ": {{" + p.Name + "}}\n"
				case "header":
					headers += "  " + p.Name + ": {{$guid}}\n"
				}
			}
			body, content := "none", ""
			if op.RequestBody != nil {
				var example any
				if err := json.Unmarshal(op.RequestBody.Content[jsonType].Example, &example); err != nil {
					t.Fatalf("%s %s: the body has no example: %v", method, path, err)
				}
				text, err := json.MarshalIndent(example, "  ", "  ")
				if err != nil {
					t.Fatal(err)
				}
				body, content = "json", "body:json {\n  "+string(text)+"\n}\n\n"
			}
			address := path
			for _, p := range op.Parameters {
				if p.In == "path" {
					address = strings.ReplaceAll(address, "{"+p.Name+"}", ":"+p.Name)
				}
			}
			var b strings.Builder
			fmt.Fprintf(&b, "meta {\n  name: %s\n  type: http\n  seq: %d\n}\n\n", strings.ToUpper(method)+" "+path, sequence[op.Tags[0]])
			fmt.Fprintf(&b, "%s {\n  url: {{baseUrl}}%s\n  body: %s\n  auth: %s\n}\n\n", method, address, body, kind)
			for _, section := range [][2]string{{"params:query", query}, {"params:path", segments}, {"headers", headers}} {
				if section[1] != "" {
					b.WriteString(section[0] + " {\n" + section[1] + "}\n\n")
				}
			}
			b.WriteString(credential + content)
			b.WriteString("docs {\n  " + op.Summary + "\n\n  " + op.Description + "\n}\n")
			files[op.Tags[0]+"/"+op.OperationID+".bru"] = b.String()
		}
	}
	files["bruno.json"] = `{"version": "1", "name": "Assay", "type": "collection"}` + "\n"
	files["environments/local.bru"] = brunoEnvironment
	return files
}

// brunoEnvironment has the variables of the requests. Bruno stores secret variables outside of
// the collection.
const brunoEnvironment = `vars {
  baseUrl: http://127.0.0.1:8080
  name: AK-47%20%7C%20Redline%20(Field-Tested)
  userId: u1
  id: 1
  provider: sim
  key: shop
  operator: anna
  number: 1
}
vars:secret [
  marketSecret,
  platformToken,
  adminToken
]
`

// generateBruno compares the stored collection with the document. With ASSAY_UPDATE=1 it rewrites the collection.
func generateBruno(t *testing.T, document []byte) {
	t.Helper()
	files := brunoRequests(t, document)
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.RemoveAll(brunoDir); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			path := filepath.Join(brunoDir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	stored := map[string]bool{}
	err := filepath.WalkDir(brunoDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(brunoDir, path)
		stored[filepath.ToSlash(name)] = true
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(brunoDir, filepath.FromSlash(name)))
		if err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v): run make generate", name, err)
		}
		delete(stored, name)
	}
	for name := range stored {
		t.Errorf("%s belongs to no route: run make generate", name)
	}
}

// TestBruno_EveryRequestIsValid parses the stored requests. Each request must reach its route.
// The test sends the GET requests, except the stream, with the secrets of the environment.
func TestBruno_EveryRequestIsValid(t *testing.T) {
	h := startServer(t, nil)
	variables := map[string]string{
		"baseUrl": "", "marketSecret": marketSecret, "platformToken": platformToken, "adminToken": adminToken, "$guid": "e2b1c3",
	}
	for line := range strings.Lines(brunoEnvironment) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name != "baseUrl" {
			variables[name] = value
		}
	}
	for _, op := range h.api.routes.operations {
		file := filepath.Join(brunoDir, tag(op.path), operationID(op)+".bru")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		sent := string(text)
		for name, value := range variables {
			sent = strings.ReplaceAll(sent, "{{"+name+"}}", value)
		}
		if strings.Contains(sent, "{{") {
			t.Errorf("%s: got an unknown variable in the text, want only variables of the environment:\n%s", file, sent)
		}
		blocks := brunoBlocks(sent)
		method := strings.ToLower(op.method)
		address := blocks[method]["url"]
		for name, value := range blocks["params:path"] {
			address = strings.ReplaceAll(address, ":"+name, value)
		}
		found, _, _ := h.api.routes.find(op.method, address)
		if found == nil || found.path != op.path {
			t.Errorf("%s: %s %s reaches %v, want %s", file, op.method, address, found, op.path)
		}
		if op.method != "GET" || op.path == "/api/prices/stream" {
			continue
		}
		headers := ""
		for name, value := range blocks["headers"] {
			headers = name + ": " + value
		}
		if token := blocks["auth:bearer"]["token"]; token != "" {
			headers = "Authorization: Bearer " + token
		}
		var with []header
		if headers != "" {
			with = append(with, header(headers))
		}
		got := h.request(op.method, address, "", with...)
		if got.StatusCode == 401 || got.StatusCode == 403 || got.StatusCode == 400 || got.StatusCode >= 500 {
			t.Errorf("%s: got status %d %s, want the request accepted", file, got.StatusCode, got.body)
		}
	}
}

// brunoBlocks parses the blocks of a file with one name and value per line.
func brunoBlocks(text string) map[string]map[string]string {
	blocks := map[string]map[string]string{}
	var block map[string]string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasSuffix(line, " {") && !strings.HasPrefix(line, " "):
			block = map[string]string{}
			blocks[strings.TrimSuffix(line, " {")] = block
		case line == "}":
			block = nil
		case block != nil:
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(name, "~") {
				block[name] = value
			}
		}
	}
	return blocks
}
