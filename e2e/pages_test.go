package e2e

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/inventory/steaminv/steaminvtest"
)

// blocks returns the blocks of code of a page in a language, in their order.
func blocks(t *testing.T, page, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?sm)^ *```(\\w+)\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	return found
}

// elsewhere matches tools that cannot run in a test. They need a container runtime, a cluster,
// another machine, or the source code of the program.
var elsewhere = regexp.MustCompile(`(?m)(^|[ |&(])(docker|kubectl|helm|sudo|make|go|git) `)

// shellServer is a server and a shell. The shell's directory data is the server's directory, as on the pages.
type shellServer struct {
	*server
	shell string
}

func newShellServer(t *testing.T, env ...string) shellServer {
	t.Helper()
	s := shellServer{newServer(t, env...), t.TempDir()}
	if err := os.Symlink(s.dir, filepath.Join(s.shell, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(s.shell, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(s.shell, "bin", "assay")); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs commands in the shell and returns their output.
func (s shellServer) run(commands string) string {
	s.t.Helper()
	text := strings.NewReplacer("http://127.0.0.1:8080", "http://"+s.addr, "/etc/assay/", s.shell+"/", "assay serve", "assay config").Replace(commands)
	// The blocks of a page run one after the other in the same directory.
	prelude := "export PATH=\"$PWD/bin:$PATH\" LISTEN_ADDR=" + s.addr + "\n"
	return runIn(s.t, s.shell, nil, "bash", "-euo", "pipefail", "-c", prelude+text)
}

// TestPages_CommandsRun runs the shell commands of the tutorial and of the how-to pages in a
// new directory. A block runs with the variables of the blocks before it. Commands that start
// a server are checked with `assay config` instead.
func TestPages_CommandsRun(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	const steamID, listed = "76561198000000001", "AK-47 | Redline (Field-Tested)"
	// Problem codes that the commands of a page may get, because the example needs a different state.
	allowed := map[string][]string{
		"quarantine-and-held-prices": {"not_quarantined", "no_candidate"},
		"follow-prices":              {"cursor_expired", "price_not_found"},
	}
	variables := blocks(t, "docs/reference/http-api.md", "sh")[0]
	tutorial := blocks(t, "docs/tutorial/first-steps.md", "sh")
	lists, push := strings.ReplaceAll(tutorial[3], `"key": "waxpeer"`, `"key": "north"`), tutorial[4]
	ran := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		var script []string
		for _, block := range blocks(t, "docs/how-to/"+filepath.Base(file), "sh") {
			if !elsewhere.MatchString(block) {
				script = append(script, block)
			}
		}
		if len(script) == 0 {
			continue
		}
		ran += len(script)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steam := httptest.NewServer(&steaminvtest.Server{Inventories: map[string]*steaminvtest.Inventory{
				steamID + "/730/2": steaminvtest.New(catalog.CS2, "2", steaminvtest.Item{AssetID: "101", ClassID: "1", Name: listed}),
				steamID + "/570/2": steaminvtest.New(570, "2"),
			}})
			t.Cleanup(steam.Close)
			s := newShellServer(t, "STEAM_BASE_URL="+steam.URL, "STEAM_INVENTORY_PACE=20ms")
			s.run(lists)
			s.env = append(s.env, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+filepath.Join(s.shell, "lists.json"), "PAYMENT_FEE_RULES="+filepath.Join(s.shell, "fees.json"))
			create(t, filepath.Join(s.shell, "fees.json"), blocks(t, "docs/reference/fee-rules.md", "json")[0])
			create(t, filepath.Join(s.shell, "prices-of-2026-10.csv"), blocks(t, "docs/how-to/choose-a-pricing-policy.md", "text")[0])
			s.run("mkdir prices && sed 's/^ *//' prices-of-2026-10.csv > prices/october.csv")
			s.start()
			s.run(push)
			if name == "delete-a-user" { // the page begins with a user who has money
				s.deposit("u1", 2589)
			}
			example := strings.ReplaceAll(strings.Join(script, "\n"), "skinport/skinport", "pricelist/north") // a market of the tutorial
			out := s.run(variables + example)
			for _, m := range regexp.MustCompile(`"code":"(\w+)","requestId"`).FindAllStringSubmatch(out, -1) {
				if !slices.Contains(allowed[name], m[1]) {
					t.Errorf("a command printed the unexpected status %s:\n%s", m[1], out)
				}
			}
		})
	}
	if ran < 20 {
		t.Errorf("found %d blocks of commands, want at least 20: the test no longer recognizes them", ran)
	}
}

// passing matches the parts of an output that differ in each run: times, durations and ages.
var passing = regexp.MustCompile(`(\d{4}-)?\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?|\d+s (ago|old)|\d+\.\d+ s\b`)

// lasting returns an output without its passing parts and without the spaces that align columns.
func lasting(output string) string {
	var lines []string
	for line := range strings.SplitSeq(passing.ReplaceAllString(output, ""), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestTutorial_CommandsRun runs each command in the shell and text blocks of the tutorial,
// starting with the price list. It compares the output with the lines of the page, in order.
func TestTutorial_CommandsRun(t *testing.T) {
	t.Parallel()
	const page = "docs/tutorial/first-steps.md"
	text, err := os.ReadFile("../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## 2. ")
	s := newShellServer(t)
	started, shown := false, 0
	for _, m := range regexp.MustCompile("(?sm)^```(sh|text)\n(.*?)^```").FindAllStringSubmatch(rest, -1) {
		if m[1] == "sh" {
			if !strings.Contains(m[2], "mkdir shop") { // the directory of the shell is new
				s.run(m[2])
			}
			continue
		}
		for _, part := range strings.Split("\n"+m[2], "\n$ ")[1:] {
			command, output, _ := strings.Cut(part, "\n")
			if strings.HasPrefix(command, "assay serve") {
				s.env = append(s.env, "PRICELIST_CONFIG="+filepath.Join(s.shell, "lists.json"))
				s.spawnCommand("serve", "--config", filepath.Join(s.shell, "assay.conf"))
				s.awaitHealth()
				started = true
				continue
			}
			if strings.HasPrefix(command, "assay inventory show") {
				s.awaitPriced()
			}
			got := lasting(s.run(command))
			shown++
			at := 0
			for line := range strings.SplitSeq(strings.TrimSpace(lasting(output)), "\n") {
				if line == "" || line == "..." {
					continue
				}
				next := strings.Index("\n"+got[at:]+"\n", "\n"+line+"\n")
				if next < 0 {
					t.Errorf("%s: the output lacks the line %q after the lines before it:\n%s", command, line, got)
					continue
				}
				at += next + len(line)
			}
		}
	}
	if !started || shown < 6 {
		t.Errorf("got %d commands of %s, server started: %v, want at least 6 and a started server", shown, page, started)
	}
}
