// Package docs_test compares the documentation with the code: every link has a target,
// and every list is complete.
package docs_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the root directory of the repository.
const root = ".."

// pages returns every page of the documentation with its text, by path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"} {
		out[name] = read(t, name)
	}
	walk(t, "docs", ".md", func(path string) { out[path] = read(t, path) })
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// walk calls fn for the files below a directory whose names end in suffix.
func walk(t *testing.T, dir, suffix string, fn func(path string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		path, err = filepath.Rel(root, path)
		fn(filepath.ToSlash(path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the headings of a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		out[strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return out
}

func TestLinks_LeadSomewhere(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s, which has no such part", page, m[1])
			}
		}
	}
}

func TestIndex_HasEveryPage(t *testing.T) {
	all := pages(t)
	index := all["docs/README.md"]
	for page := range all {
		inside, ok := strings.CutPrefix(page, "docs/")
		if ok && inside != "README.md" && !strings.Contains(index, "]("+inside+")") {
			t.Errorf("docs/README.md does not list %s", inside)
		}
	}
}

// TestBlocks_AreValidShell checks the syntax of all shell commands. TestPages_EveryCommandParses in
// internal/cli parses the commands of the program, and e2e runs those that need nothing else.
func TestBlocks_AreValidShell(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	block := regexp.MustCompile("(?sm)^( *)```(?:sh|bash)\n(.*?)^ *```")
	checked := 0
	for page, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			checked++
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: got error %v, want valid commands: %s\n%s", page, err, out, m[2])
			}
		}
	}
	if checked < 50 {
		t.Errorf("found %d blocks, want at least 50: the test no longer recognizes them", checked)
	}
}

// maxUserWords is the number of words that the pages for users may have together, so that they
// stay readable.
const maxUserWords = 25_000

// TestUserPages_AreShort counts the words of all pages except the pages for contributors, which
// docs/README.md lists. Words in tables count. Words in code samples do not.
func TestUserPages_AreShort(t *testing.T) {
	word := regexp.MustCompile(`[\pL\pN]`)
	words, counted := 0, map[string]int{}
	walk(t, "docs", ".md", func(page string) {
		if strings.HasPrefix(page, "docs/contribute/") || strings.HasPrefix(page, "docs/adr/") {
			return
		}
		text, _, _ := strings.Cut(read(t, page), "\n## For contributors\n") // the second half of the index
		for field := range strings.FieldsSeq(codeBlock.ReplaceAllString(text, "")) {
			if word.MatchString(field) {
				counted[page]++
				words++
			}
		}
	})
	if len(counted) < 40 {
		t.Errorf("found %d pages, want at least 40: the test no longer recognizes them", len(counted))
	}
	if words > maxUserWords {
		t.Errorf("the pages for users have %d words, more than %d: shorten them, or move what only contributors need to docs/contribute", words, maxUserWords)
		for page, n := range counted {
			t.Logf("%5d %s", n, page)
		}
	}
}

// TestReadme_FitsOnAFewScreens limits the README. Newcomers decide on the first screen whether to
// read on. It has at most 25 lines of prose, and the two commands are at its top.
func TestReadme_FitsOnAFewScreens(t *testing.T) {
	page := read(t, "README.md")
	first, _, _ := strings.Cut(page, "\n## ")
	if n := len(strings.FieldsFunc(codeBlock.ReplaceAllString(first, ""), func(r rune) bool { return r == '\n' })); n > 25 {
		t.Errorf("the first part has %d lines of prose, want at most 25", n)
	}
	if before, _, found := strings.Cut(first, "make run"); !found || strings.Count(before, "\n") > 5 || !strings.Contains(first, "make test") {
		t.Error("make run and make test are not at the top of the README, want both there")
	}
	folded := regexp.MustCompile(`(?s)<details>.*?</details>`).ReplaceAllString(page, "")
	if n := strings.Count(folded, "\n"); n > 70 {
		t.Errorf("the README has %d lines, want at most 70; move details to a page", n)
	}
}

func TestArchitecture_ListsEveryPackage(t *testing.T) {
	page := read(t, "docs/contribute/architecture.md")
	dirs := map[string]bool{}
	walk(t, "internal", ".go", func(path string) { dirs[filepath.Dir(path)] = true })
	if len(dirs) < 40 {
		t.Fatalf("found %d packages, want at least 40: the test no longer recognizes them", len(dirs))
	}
	for dir := range dirs {
		name := filepath.Base(dir)
		if name == filepath.Base(filepath.Dir(dir))+"test" {
			continue // fake servers, listed together
		}
		if !regexp.MustCompile(`(?m)[ /]` + name + `/`).MatchString(page) {
			t.Errorf("docs/contribute/architecture.md does not list %s", dir)
		}
	}
}

func TestRules_NameFunctionsAndTestsThatExist(t *testing.T) {
	place := regexp.MustCompile("`([a-z0-9_/]+\\.go):(\\w+)`")
	found := place.FindAllStringSubmatch(read(t, "docs/contribute/refresh.md"), -1)
	if len(found) < 50 {
		t.Fatalf("found %d references to code, want at least 50: the test no longer recognizes them", len(found))
	}
	for _, m := range found {
		file, name := m[1], regexp.QuoteMeta(m[2])
		defined := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `[(\[]|^(const |\t)` + name + ` = `)
		if !defined.MatchString(read(t, file)) {
			t.Errorf("%s does not declare %s", file, m[2])
		}
	}
}

func TestReasons_EveryWordIsDescribed(t *testing.T) {
	page := read(t, "docs/reference/statuses-and-reasons.md") + read(t, "docs/reference/problems.md") + read(t, "docs/contribute/http-api.md") + read(t, "docs/contribute/pricing.md")
	words := []*regexp.Regexp{
		regexp.MustCompile(`fault\.New\(fault\.\w+,\s*"([a-z_]+)"`),               // codes of faults
		regexp.MustCompile(`[cC]ode: +"([a-z_]+)"`),                               // codes that are not faults
		regexp.MustCompile(`Kind\w+ +Kind += +"(\w+)"`),                           // error kinds
		regexp.MustCompile(`Item\w+ += +"(\w+)"`),                                 // item states
		regexp.MustCompile(`Skip\w+ += +"(\w+)"`),                                 // reasons of skipped items
		regexp.MustCompile(`Code\w+ +(?:Code +)?= +"(\w+)"`),                      // codes of inspections
		regexp.MustCompile(`Inspect\w+ +InspectState += +"(\w+)"`),                // states of inspections
		regexp.MustCompile(`Outcome\w+ +Outcome += +"(\w+)"`),                     // outcomes of a market
		regexp.MustCompile(`(?:Unit|Stage)\w+ +(?:UnitState|Stage) += +"(\w+)"`),  // states of units, and stages
		regexp.MustCompile(`\w+ +(?:State|Kind|Reason|BreakerState) += +"(\w+)"`), // jobs, quotes and the circuit breaker
	}
	described := 0
	walk(t, "internal", ".go", func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		text := read(t, path)
		for _, w := range words {
			for _, m := range w.FindAllStringSubmatch(text, -1) {
				described++
				if !strings.Contains(page, "`"+m[1]+"`") {
					t.Errorf("%s contains %q, which is not described", path, m[1])
				}
			}
		}
	})
	if described < 80 {
		t.Errorf("found %d described words, want at least 80", described)
	}
}
