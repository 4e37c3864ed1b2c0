package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageBlock  = regexp.MustCompile("(?sm)^ *```(?:sh|bash|text|console|cron)\n(.*?)^ *```")
	pageInline = regexp.MustCompile("`((?:bin/)?assay [^`\n]+)`")
	// A command begins a line, or follows a prompt, another command, or a prefix such as "sudo -u assay".
	pageCommand = regexp.MustCompile(`(?m)(?:^|\$ |&& |-u assay |exec assay |\*  |MODULES=\w+ )(?:bin/)?assay ([^\n]*)`)
	endOfWords  = regexp.MustCompile(`\s(?:#|\||&&|>|<|;)`)
	notCommand  = regexp.MustCompile(`^(?:works|is|has|\.\.\.)\b`)
	incomplete  = regexp.MustCompile(`^(?:expected|missing flags)`)
	nested      = regexp.MustCompile(`\$\([^)]*\)`)
)

// pageArgs are the arguments of a command on a page. In a sentence they may be incomplete,
// such as "restore --force".
type pageArgs struct {
	line     string
	sentence bool
}

// commandsOf returns the arguments of all commands on a page.
func commandsOf(page string) (found []pageArgs) {
	add := func(line string, sentence bool) {
		line = nested.ReplaceAllString(line, "X")
		if i := endOfWords.FindStringIndex(line); i != nil {
			line = line[:i[0]]
		}
		found = append(found, pageArgs{strings.TrimRight(strings.TrimSpace(line), ".:,"), sentence})
	}
	for _, block := range pageBlock.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		for _, m := range pageCommand.FindAllStringSubmatch(regexp.MustCompile(`(?m)^ +`).ReplaceAllString(text, ""), -1) {
			add(m[1], false)
		}
	}
	for _, m := range pageInline.FindAllStringSubmatch(pageBlock.ReplaceAllString(page, ""), -1) {
		_, args, _ := strings.Cut(m[1], "assay ")
		add(args, true)
	}
	return found
}

// TestPages_EveryCommandParses parses every command of the program on every page of the
// documentation, also in places where it cannot run in a test.
func TestPages_EveryCommandParses(t *testing.T) {
	root := filepath.Join("..", "..")
	files := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") && path != "docs/reference/cli.md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed := 0
	for _, file := range files {
		page, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range commandsOf(string(page)) {
			if notCommand.MatchString(args.line) {
				continue
			}
			words := shellWords(strings.ReplaceAll(args.line, "'", `"`))
			parsed++
			if _, err := testParser(t, io.Discard).Parse(words); err != nil && (!args.sentence || !incomplete.MatchString(err.Error())) {
				t.Errorf("%s: got error %[3]v, want a valid command: assay %[2]s", file, args.line, err)
			}
		}
	}
	if parsed < 100 {
		t.Errorf("found %d commands, want at least 100: the test no longer recognizes them", parsed)
	}
}
