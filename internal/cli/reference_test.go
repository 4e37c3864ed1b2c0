package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// testParser returns a parser that writes help to out and never exits.
func testParser(t *testing.T, out io.Writer) *kong.Kong {
	t.Helper()
	t.Setenv("COLUMNS", "100")
	var g grammar
	parser, err := newParser(&g, newSettingFlags(), out, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// helpOf returns the output of `assay args --help`.
func helpOf(t *testing.T, args string) string {
	t.Helper()
	var out bytes.Buffer
	// --help takes precedence over errors in the arguments.
	_, _ = testParser(t, &out).Parse(append(strings.Fields(args), "--help"))
	return out.String()
}

func TestHelp_EveryCommandHasExamplesThatParse(t *testing.T) {
	parser := testParser(t, io.Discard)
	for _, leaf := range parser.Model.Leaves(true) {
		shown := examplesOf(leaf)
		if len(shown) == 0 {
			t.Errorf("command %s: got no example, want at least one", leaf.FullPath())
		}
		for _, e := range shown {
			words := shellWords(e.args)
			ctx, err := testParser(t, io.Discard).Parse(words)
			if err != nil {
				t.Errorf("example %q: got error %v, want a valid command", e.args, err)
				continue
			}
			if got := ctx.Selected().FullPath(); got != leaf.FullPath() {
				t.Errorf("example %q: got the command %s, want %s", e.args, got, leaf.FullPath())
			}
		}
	}
}

// shellWords splits a line at spaces outside of double quotes.
func shellWords(line string) []string {
	quoted := false
	words := strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, `"`, "")
	}
	return words
}

// TestReference_MatchesTheHelp compares docs/reference/cli.md with the help of every command.
// Run it with ASSAY_UPDATE=1 to update the page.
func TestReference_MatchesTheHelp(t *testing.T) {
	var page strings.Builder
	page.WriteString(referenceHead)
	page.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, m := range exitMeanings() {
		fmt.Fprintf(&page, "| %d | %s |\n", m.code, m.text)
	}
	common := flagsOf(helpOf(t, ""))
	fmt.Fprintf(&page, "\n## Flags of every command\n\n```text\n%s```\n", common)
	for _, leaf := range testParser(t, io.Discard).Model.Leaves(true) {
		path := leaf.Path() // "inventory sync"
		path = strings.TrimPrefix(path, "assay ")
		if i := strings.Index(path, " <"); i >= 0 {
			path = path[:i]
		}
		page.WriteString(reference(path, helpOf(t, path), common))
	}
	file := filepath.Join("..", "..", "docs", "reference", "cli.md")
	if os.Getenv("ASSAY_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(have)); diff != "" {
		t.Errorf("docs/reference/cli.md is outdated: update it with ASSAY_UPDATE=1 (-want +got):\n%s", diff)
	}
}

// flagsOf returns the flags in the help of the program. Every command also has these flags.
func flagsOf(help string) string {
	_, flags, _ := strings.Cut(help, "Flags:\n")
	flags, _, _ = strings.Cut(flags, "\n\n")
	return flags + "\n"
}

// reference returns the section of a command: its help without the common flags and settings.
func reference(path, help, common string) string {
	help = strings.Replace(help, "Flags:\n"+common, "", 1)
	help, _, _ = strings.Cut(help, "\nSettings (")
	help = strings.TrimSpace(strings.ReplaceAll(help, "\n\n\n", "\n\n"))
	return fmt.Sprintf("\n## assay %s\n\n```text\n%s\n```\n", path, strings.TrimPrefix(help, "Usage: "))
}

const referenceHead = `# The command line

Commands find the server's address and secrets as the server does: in flags, the environment, the file named by ` + "`--config`" + `, the defaults, and
` + "`DATA_DIR/secrets`" + `. So on the server's own machine ` + "`--data-dir`" + ` is all that a command needs. Every setting that is no
secret is also a flag: ` + "`MARKET_PRICE_TTL`" + ` is ` + "`--market-price-ttl`" + `. [Configuration](configuration.md) explains them.

Results go to standard output, progress and errors to standard error. With ` + "`--json`" + ` results are JSON, one object a line, and an error is
` + "`{\"error\":{\"exitCode\":4,\"detail\":\"...\",...}}`" + `; amounts are decimal numbers and times RFC 3339. Names with control characters, or with spaces at an end,
are quoted in text and exact in JSON.
`
