package e2e

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay/internal/provider/csfloat/csfloattest"
	"assay/internal/provider/skinport/skinporttest"
	"assay/internal/provider/waxpeer/waxpeertest"
)

// readmeBlock returns the first block of code of a language in the README that contains a text.
func readmeBlock(t *testing.T, language, text string) string {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], text) {
			return m[1]
		}
	}
	t.Fatalf("the README has no %s block with %q", language, text)
	return ""
}

func create(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadme_LivePricesAndExamples follows the README: a server with live providers, which are
// fakes here, one pushed inventory, one price, and the examples in TypeScript and Go.
func TestReadme_LivePricesAndExamples(t *testing.T) {
	t.Parallel()
	const name, knife = "AK-47 | Redline (Field-Tested)", "★ Karambit | Doppler (Factory New)"
	// Without sales in 30 days, later runs would skip the item.
	sold := [4]skinporttest.Sales{{Median: "28.40", Volume: 2}, {Median: "28.30", Volume: 11}, {Median: "28.20", Volume: 46}, {Median: "28.10", Volume: 130}}
	fakes := map[string]*httptest.Server{
		"SKINPORT": httptest.NewServer(&skinporttest.Server{Rows: []skinporttest.Row{{Name: name, Ask: "28.50", Quantity: 40, Sales: sold}}}),
		"CSFLOAT":  httptest.NewServer(&csfloattest.Server{Rows: []csfloattest.Row{{Name: name, MinPrice: "2795", Quantity: "12"}}, Dopplers: []csfloattest.Doppler{{Name: knife, PaintIndex: "418", Phase: "Phase 1", MinPrice: "90000"}}}),
		"WAXPEER":  httptest.NewServer(&waxpeertest.Server{Rows: []waxpeertest.Row{{Name: name, Min: "28100", Count: "7"}}, Dopplers: []waxpeertest.Doppler{{Name: knife, Phase: "Phase 1", Price: "900000"}}}),
	}
	var env []string
	for key, fake := range fakes {
		t.Cleanup(fake.Close)
		env = append(env, key+"_BASE_URL="+fake.URL)
	}
	s := newServer(t, env...)
	command := readmeBlock(t, "sh", "bin/assay serve")
	s.spawnCommand(strings.Fields(strings.TrimPrefix(command, "bin/assay "))...)
	s.awaitHealth()

	dir := t.TempDir()
	for link, target := range map[string]string{"data": s.dir, "bin/assay": binary} {
		err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o700)
		if err == nil {
			err = os.Symlink(target, filepath.Join(dir, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	of := strings.NewReplacer("http://127.0.0.1:8080", "http://"+s.addr, `process.env.PLATFORM_API_TOKEN!`, `"`+s.secret("PLATFORM_API_TOKEN")+`"`,
		`os.Getenv("PLATFORM_API_TOKEN")`, `"`+s.secret("PLATFORM_API_TOKEN")+`"`)
	push, prices, _ := strings.Cut(of.Replace(readmeBlock(t, "sh", "PLATFORM_API_TOKEN=$(cat")), "\nsleep 5; bin/assay prices")
	if out := runIn(t, dir, nil, "sh", "-ec", push); !strings.Contains(out, `"queuedNames":1`) {
		t.Errorf("push: got %s, want one queued name", out)
	}
	s.awaitPriced()
	show := "LISTEN_ADDR=" + s.addr + " bin/assay prices" + prices
	if out := runIn(t, dir, nil, "sh", "-ec", show); !regexp.MustCompile(`price +28\.1 USD \(ok`).MatchString(out) || strings.Contains(out, "no sales") {
		t.Errorf("assay prices: got %s, want the price 28.1 USD with status ok, and no pause", out)
	}
	const printed = name + " 28.1 USD ok\n"
	t.Run("TypeScript", func(t *testing.T) {
		script := clientScript(t, strings.Replace(of.Replace(readmeBlock(t, "ts", "connect(")), `"assay-client"`, `"./index.js"`, 1))
		if out := runIn(t, dir, nil, "node", script); out != printed {
			t.Errorf("the example printed %q, want %q", out, printed)
		}
	})
	t.Run("Go", func(t *testing.T) {
		const before = "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"log\"\n\t\"os\"\n\n\tassay \"assay/client/go\"\n\t\"assay/client/go/api\"\n)\n\n" +
			"func main() {\n\tif err := run(context.Background()); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\nvar _ = os.Args\n\nfunc run(ctx context.Context) error {\n"
		program := goProgram(t, before+of.Replace(readmeBlock(t, "go", "assay.New("))+"\treturn nil\n}\n")
		if out := runIn(t, program, nil, "go", "run", "."); out != printed {
			t.Errorf("the example printed %q, want %q", out, printed)
		}
	})
}
