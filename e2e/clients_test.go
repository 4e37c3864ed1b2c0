package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/internal/api/apitest"
	"assay/internal/money"
	"assay/internal/randtest"
)

// TestClients_UseServedDocument checks the OpenAPI document and the metrics of a server with
// public linters. It also runs clients generated from the document against the API. All prices
// must keep every digit.
func TestClients_UseServedDocument(t *testing.T) {
	t.Parallel()
	prices := exactPrices(t)
	s := newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+exactList(t, prices))
	s.start()
	_, document, err := s.call(http.MethodGet, "/openapi.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	task, err := json.Marshal(map[string]any{"URL": "http://" + s.addr, "Token": s.secret("ADMIN_API_TOKEN"), "Prices": prices})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Go", func(t *testing.T) { goClient(t, document, task) })
	t.Run("TypeScript", func(t *testing.T) { typescriptClient(t, document, task) })
	t.Run("Responses", func(t *testing.T) { responsesAreDescribed(t, s, document) })
	t.Run("MetaSchema", func(t *testing.T) { isValidOpenAPI(t, document) })
	t.Run("Redocly", func(t *testing.T) {
		dir := clientDir(t, document, "redocly.yaml")
		if out := runIn(t, dir, nil, npmTool(t, "redocly"), "lint", "openapi.json"); !strings.Contains(out, "is valid") || strings.Contains(out, "arning was generated") {
			t.Errorf("redocly lint: got\n%s\nwant a valid document without warnings", out)
		}
	})
	t.Run("Spectral", func(t *testing.T) {
		runIn(t, clientDir(t, document, "spectral.yaml"), nil, npmTool(t, "spectral"), "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", "openapi.json")
	})
	t.Run("promtool", func(t *testing.T) {
		promtool, err := exec.LookPath("promtool")
		if err != nil {
			missing(t, "promtool is not installed (on Debian: apt-get install prometheus)")
		}
		status, metrics, err := s.call(http.MethodGet, "/metrics", nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("metrics: got status %d, error %v, want 200", status, err)
		}
		if out := runIn(t, t.TempDir(), metrics, promtool, "check", "metrics"); out != "" {
			t.Errorf("promtool check metrics: got\n%s\nwant no output", out)
		}
		for _, line := range []string{
			`assay_http_requests_total{method="POST",route="/api/inventory/{userId}/sync",status="200"}`,
			`assay_http_request_duration_seconds_bucket{method="POST",route="/api/prices/lookup",le="0.1"}`,
			`assay_provider_latency_seconds_bucket{host="`,
			`assay_inventory_syncs_total{kind="push",outcome="ok",reason=""}`,
		} {
			if !bytes.Contains(metrics, []byte(line)) {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

// missing skips a test because a tool is not installed. In CI it fails the test instead.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// npmTool returns the path of a program installed by clients/package.json.
func npmTool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("clients", "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, name+" is not installed: run make setup, which needs npm and Node.js 20.19 or newer")
	}
	return path
}

// clientDir creates a directory with the document and copies of client files.
func clientDir(t *testing.T, document []byte, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("clients", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runIn runs a program that must succeed, and returns its output.
func runIn(t *testing.T, dir string, input []byte, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: got error %v, want success\n%s", filepath.Base(name), args, err, out[:min(len(out), 8000)])
	}
	return string(out)
}

func goClient(t *testing.T, document, task []byte) {
	dir := clientDir(t, document, "go/go.mod", "go/go.sum", "go/generate.yaml", "go/main.go")
	runIn(t, dir, nil, "go", "tool", "oapi-codegen", "-config", "generate.yaml", "-o", "api.gen.go", "openapi.json")
	runIn(t, dir, nil, "go", "build", "-o", "client", ".")
	t.Log(runIn(t, dir, task, filepath.Join(dir, "client")))
}

func typescriptClient(t *testing.T, document, task []byte) {
	generate, compile := npmTool(t, "openapi-typescript"), npmTool(t, "tsc")
	dir := clientDir(t, document, "package.json", "tsconfig.json", "flow.ts")
	if err := os.Symlink(filepath.Dir(filepath.Dir(generate)), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	runIn(t, dir, nil, generate, "openapi.json", "-o", "schema.d.ts")
	runIn(t, dir, nil, compile)
	t.Log(runIn(t, dir, task, "node", "flow.js"))
}

// exactPrices returns prices of all magnitudes by name, with every digit. It includes the last
// week of the recorded prices if they are available.
func exactPrices(t *testing.T) map[string]string {
	t.Helper()
	r := randtest.New(t)
	prices := map[string]string{}
	const highest = 10_000_000 * money.Scale
	for i := range randtest.Count(2000, 20_000) {
		digits := 1 + r.IntN(14)
		most := int64(1)
		for range digits {
			most *= 10
		}
		prices[fmt.Sprintf("Item %d", i)] = money.Micro(min(highest, 1+r.Int64N(most))).String()
	}
	for i, edge := range []money.Micro{1, 9, 99, 999_999, 1_000_001, highest - 1, highest, 16_777_217, 33_554_433} {
		prices[fmt.Sprintf("Edge %d", i)] = edge.String()
	}
	path, err := filepath.Abs("../../shared/data/cs2_steam_weekly_2026_usd_cents.csv.gz")
	if _, missing := os.Stat(path); err != nil || missing != nil {
		return prices
	}
	for _, row := range columns(t, path) {
		if price, err := money.Parse([]byte(row["2026-08-08"]), 100); err == nil && price > 0 {
			prices[row["market_hash_name"]] = price.String()
		}
	}
	return prices
}

// exactList writes a price list of one market.
func exactList(t *testing.T, prices map[string]string) string {
	t.Helper()
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	_ = w.Write([]string{"name", "price"})
	for name, price := range prices {
		_ = w.Write([]string{name, price})
	}
	w.Flush()
	dir := t.TempDir()
	config := `{"lists":[{"key":"exact","location":"exact.csv","format":"csv","appId":730,"currency":"USD","name":"name","markets":[{"key":"exact","ask":"price"}]}]}`
	for name, content := range map[string]io.Reader{"exact.csv": &text, "lists.json": strings.NewReader(config)} {
		b, err := io.ReadAll(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "lists.json")
}

// responsesAreDescribed validates responses of a server with the schemas in its document.
func responsesAreDescribed(t *testing.T, s *server, document []byte) {
	d, err := apitest.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	const job, ledger, fees = "/api/market-prices/jobs/{id}", "/api/functions/admin/wallet-ledger/{userId}", "/api/functions/admin/payment-fee-rules"
	of := strings.NewReplacer("{id}", "1", "{userId}", "seller", "{name}", "Edge%201")
	for _, path := range []string{
		"/api/market-prices/status", "/api/market-prices/provider-debug", "/api/market-prices/job-debug", "/api/market-prices/jobs", job, job + "/items",
		"/api/prices/items", "/api/prices/items/{name}", "/api/inventory/{userId}", ledger + "/balance", ledger + "/entries", ledger + "/verify",
		fees, "/api/listings", "/api/listings/{id}", "/api/trades", "/api/trades/{id}", "/api/community/top-traders", "/api/health", "/api/unheard/of",
	} {
		status, body, err := s.call(http.MethodGet, of.Replace(path), nil)
		var value any
		if err == nil {
			err = json.Unmarshal(body, &value)
		}
		schema := []string{"paths", path, "get", "responses", "200", "content", "application/json", "schema"}
		if path == "/api/unheard/of" {
			schema = []string{"components", "schemas", "Problem"}
		} else if status != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", path, status)
		}
		if err == nil {
			err = d.Check(value, schema...)
		}
		if err != nil {
			t.Errorf("%s: cannot decode the response with status %d: %v", path, status, err)
		}
	}
}

// isValidOpenAPI validates the document with the OpenAPI 3.1 meta-schema, and each schema with
// OpenAPI's JSON Schema dialect. Spectral contains both.
func isValidOpenAPI(t *testing.T, document []byte) {
	const base = "https://spec.openapis.org/oas/3.1/"
	c := jsonschema.NewCompiler()
	for url, name := range map[string]string{base + "schema/2021-09-28": "index", base + "dialect/base": "dialect.schema", base + "meta/base": "meta.schema"} {
		text, err := os.ReadFile(filepath.Join("clients/node_modules/@stoplight/spectral-rulesets/dist/oas/schemas/oas/v3.1", name+".json"))
		if err != nil {
			missing(t, err.Error()+": run make setup")
		}
		addSchema(t, c, url, text)
	}
	addSchema(t, c, "https://stoplight.io/json-schema/draft/2020-12", []byte(`{"$ref": "https://json-schema.org/draft/2020-12/schema"}`))
	addSchema(t, c, "whole.json", []byte(`{"$ref": "`+base+`schema/2021-09-28", "$defs": {"schema": {"$dynamicAnchor": "meta", "$ref": "`+base+`dialect/base"}}}`))
	schema, err := c.Compile("whole.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, valid := range map[string]bool{
		string(document): true,
		strings.Replace(string(document), `"operationId"`, `"operationID"`, 1):      false,
		strings.Replace(string(document), `"type": "object"`, `"type": "objet"`, 1): false,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("document: got error %[2]v, want it valid: %[1]v", valid, err)
		}
	}
}

func addSchema(t *testing.T, c *jsonschema.Compiler, url string, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = c.AddResource(url, value)
	}
	if err != nil {
		t.Fatal(err)
	}
}
