package e2e

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/provider/skinport/skinporttest"
)

// TestGuides_NodeAndGoBackends runs the programs of the guides for backends in Node.js and Go. Each
// pushes an inventory to a new server, waits for its price, and copies all prices.
func TestGuides_NodeAndGoBackends(t *testing.T) {
	t.Parallel()
	const want = "AK-47 | Redline (Field-Tested) 28.5 USD thin\n1 prices\n"
	fake := httptest.NewServer(&skinporttest.Server{Rows: []skinporttest.Row{{Name: "AK-47 | Redline (Field-Tested)", Ask: "28.50", Quantity: 40}}})
	t.Cleanup(fake.Close)
	// program returns the code blocks of a page, adapted to a new server. The code does not wait for changes.
	program := func(t *testing.T, page, language string) string {
		s := newServer(t, "MARKET_PRICE_PROVIDERS=skinport", "SKINPORT_BASE_URL="+fake.URL)
		s.start()
		token := s.secret("PLATFORM_API_TOKEN")
		return strings.NewReplacer("http://127.0.0.1:8080", "http://"+s.addr, "wait=30", "wait=0",
			"${process.env.PLATFORM_API_TOKEN}", token, `os.Getenv("PLATFORM_API_TOKEN")`, `"`+token+`"`,
		).Replace(strings.Join(blocks(t, page, language), "\n"))
	}
	t.Run("Node", func(t *testing.T) {
		t.Parallel()
		compile := npmTool(t, "tsc")
		dir := clientDir(t, nil, "package.json", "tsconfig.json")
		if err := os.Symlink(filepath.Dir(filepath.Dir(compile)), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		create(t, filepath.Join(dir, "flow.ts"), program(t, "docs/how-to/integrate-a-node-backend.md", "ts")+"export {};\n")
		runIn(t, dir, nil, compile, "--erasableSyntaxOnly") // Node.js runs only such files directly
		if out := runIn(t, dir, nil, "node", "flow.js"); out != want {
			t.Errorf("the program of the page printed %q, want %q", out, want)
		}
	})
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		dir := goProgram(t, program(t, "docs/how-to/integrate-a-go-backend.md", "go"))
		if out := runIn(t, dir, nil, "go", "run", "."); out != want {
			t.Errorf("the program of the page printed %q, want %q", out, want)
		}
	})
}

// goProgram returns the directory of a program in Go that uses the Go client.
func goProgram(t *testing.T, source string) string {
	t.Helper()
	module, err := filepath.Abs("../client/go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	create(t, filepath.Join(dir, "main.go"), source)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		create(t, filepath.Join(dir, name), string(text))
	}
	runIn(t, dir, nil, "go", "mod", "edit", "-module", "backend", "-require", "assay/client/go@v0.0.0", "-replace", "assay/client/go="+module)
	runIn(t, dir, nil, "go", "vet", ".")
	return dir
}
