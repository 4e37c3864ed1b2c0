package api

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestClients_AreGeneratedFromTheDocument generates the code of the clients and compares it with
// the stored files. With ASSAY_UPDATE=1 it rewrites them.
func TestClients_AreGeneratedFromTheDocument(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, clientDocument(t), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("Go", func(t *testing.T) {
		made := filepath.Join(dir, "api.gen.go")
		generateClient(t, made, "../../client/go/api/api.gen.go",
			"go", "-C", "../../e2e/clients/go", "tool", "oapi-codegen", "-config", "../../../client/go/api/generate.yaml", "-o", made, document)
	})
	t.Run("Bruno", func(t *testing.T) {
		generateBruno(t, []byte(startServer(t, nil).request("GET", "/openapi.json", "").body))
	})
	t.Run("TypeScript", func(t *testing.T) {
		program, err := filepath.Abs("../../e2e/clients/node_modules/.bin/openapi-typescript")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip("openapi-typescript is not installed: run make setup, which needs npm and Node.js 20.19 or newer")
		}
		made := filepath.Join(dir, "schema.ts")
		generateClient(t, made, "../../client/ts/src/schema.ts", program, document, "-o", made)
	})
}

// clientDocument returns the OpenAPI document without error responses, response headers and examples.
// These parts make up two thirds of the generated code, and the clients return all failures as one type.
func clientDocument(t *testing.T) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(startServer(t, nil).request("GET", "/openapi.json", "").body), &all); err != nil {
		t.Fatal(err)
	}
	paths, _ := all["paths"].(map[string]any)
	for _, item := range paths {
		operations, _ := item.(map[string]any)
		for _, o := range operations {
			operation, _ := o.(map[string]any)
			responses, _ := operation["responses"].(map[string]any)
			for status, r := range responses {
				if response, ok := r.(map[string]any); ok && status[0] == '2' {
					delete(response, "headers")
					continue
				}
				delete(responses, status)
			}
		}
	}
	components, _ := all["components"].(map[string]any)
	delete(components, "responses")
	delete(components, "headers")
	removeExamples(all, false)
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// removeExamples removes examples below a node. If named is true, the keys of the node are names, not keywords.
func removeExamples(node any, named bool) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			removeExamples(child, false)
		}
	case map[string]any:
		if !named {
			delete(node, "example")
			delete(node, "examples")
		}
		for key, child := range node {
			removeExamples(child, !named && (key == "properties" || key == "paths" || key == "schemas"))
		}
	}
}

// generateClient runs a generator that writes the file made, and compares made with the file stored.
func generateClient(t *testing.T, made, stored, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: got error %v, want success\n%s", program, err, out)
	}
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(stored, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(stored); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v): run make generate", stored, err)
	}
}
