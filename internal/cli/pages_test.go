package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageBlock    = regexp.MustCompile("(?sm)^ *```(\\w*)[^\n]*\n(.*?)^ *```")
	pageInline   = regexp.MustCompile("`([^`\n]+)`")
	notCommand   = regexp.MustCompile(`^(?:works|is|has|\.\.\.)\b`)
	incomplete   = regexp.MustCompile(`^(?:expected|missing flags)`)
	here         = regexp.MustCompile(`<<-?["']?(\w+)["']?`)
	assignment   = regexp.MustCompile(`^\w+=`)
	cronTime     = regexp.MustCompile(`(?m)^(?:[\d*/,-]+\s+){5}`)
	redirections = regexp.MustCompile(`^\d?[<>]+&?\d?`)
	wrappers     = []string{"exec", "if", "then", "elif", "else", "while", "until", "do", "time", "!", "{"}
)

// pageArgs are the arguments of a command on a page. In a sentence they may be incomplete,
// such as "restore --force".
type pageArgs struct {
	words    []string
	sentence bool
}

// commandsOf returns the arguments of all commands on a page: those in sentences, and those in
// blocks of code in any language.
func commandsOf(page string) (found []pageArgs) {
	for _, block := range pageBlock.FindAllStringSubmatch(page, -1) {
		for _, args := range commandsOfBlock(block[1], block[2]) {
			found = append(found, pageArgs{args, false})
		}
	}
	for _, m := range pageInline.FindAllStringSubmatch(pageBlock.ReplaceAllString(page, ""), -1) {
		for _, args := range shellCommands(m[1]) {
			if last := len(args) - 1; last >= 0 {
				args[last] = strings.TrimRight(args[last], ".:,")
			}
			found = append(found, pageArgs{args, true})
		}
	}
	return found
}

// commandsOfBlock returns the arguments of the commands in a block of code.
func commandsOfBlock(language, text string) [][]string {
	text = regexp.MustCompile(`(?m)^ +`).ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "")
	switch language {
	case "sh", "bash":
	case "cron":
		text = cronTime.ReplaceAllString(text, "")
	case "text", "console", "": // a command follows a prompt, and its output follows the command
		var commands []string
		for line := range strings.SplitSeq(text, "\n") {
			after, prompt := strings.CutPrefix(line, "$ ")
			if output, ok := strings.CutPrefix(after, "assay "); prompt || ok && !notCommand.MatchString(output) {
				commands = append(commands, after)
			}
		}
		text = strings.Join(commands, "\n")
	default:
		return nil
	}
	return shellCommands(text)
}

// shellCommands returns the arguments of each call of the program in a script, also in pipes,
// substitutions and containers. It knows as much of the shell as the pages use.
func shellCommands(script string) (found [][]string) {
	script = withoutHere(script)
	var words []string
	var word strings.Builder
	started := false
	endWord := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	endCommand := func() {
		endWord()
		if args, ok := programArgs(words); ok {
			found = append(found, args)
		}
		words = nil
	}
	var quote byte
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case quote != '\'' && strings.HasPrefix(script[i:], "$("):
			end := closing(script, i+1)
			found = append(found, shellCommands(script[i+2:end])...)
			word.WriteByte('X') // any value
			started, i = true, end
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, started = c, true
		case quote == '\'' || quote == '"' && c != '\\':
			word.WriteByte(c)
		case c == '\\' && i+1 < len(script):
			i++
			word.WriteByte(script[i])
			started = true
		case c == ' ' || c == '\t':
			endWord()
		case c == '#' && !started:
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case c == '&' && strings.HasSuffix(word.String(), ">"): // 2>&1
			word.WriteByte(c)
		case strings.IndexByte("\n;|&()", c) >= 0:
			endCommand()
		default:
			word.WriteByte(c)
			started = true
		}
	}
	endCommand()
	return found
}

// withoutHere returns a script without its here documents.
func withoutHere(script string) string {
	for {
		m := here.FindStringSubmatchIndex(script)
		if m == nil {
			return script
		}
		rest, _, _ := strings.Cut(script[m[1]:], "\n")
		_, after, _ := strings.Cut(script[m[1]:]+"\n", "\n"+script[m[2]:m[3]]+"\n")
		script = script[:m[0]] + rest + "\n" + after
	}
}

// closing returns the position of the parenthesis that closes the one at open.
func closing(script string, open int) int {
	depth := 0
	for i := open; i < len(script); i++ {
		switch script[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(script)
}

// programArgs returns the arguments of a simple command, if it runs the program, perhaps as
// another user or in a container.
func programArgs(words []string) ([]string, bool) {
	for len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains(wrappers, words[0])) {
		words = words[1:]
	}
	switch {
	case len(words) > 3 && words[0] == "sudo" && words[1] == "-u":
		words = words[3:]
	case len(words) > 1 && words[0] == "sudo":
		words = words[1:]
	}
	if len(words) > 0 && (words[0] == "docker" || words[0] == "kubectl") {
		// The first word that is not an option names the service, the second one the program.
		at := slices.Index(words, "exec") + 1
		for at > 0 && at < len(words) && strings.HasPrefix(words[at], "-") {
			at++
		}
		if at == 0 || at+1 >= len(words) {
			return nil, false
		}
		if words = words[at+1:]; words[0] == "--" {
			words = words[1:]
		}
	}
	if len(words) == 0 || strings.Contains(words[0], ":") || filepath.Base(words[0]) != "assay" {
		return nil, false
	}
	var args []string
	for i := 1; i < len(words); i++ {
		if at := redirections.FindString(words[i]); at == "" {
			args = append(args, words[i])
		} else if at == words[i] && !strings.Contains(at, "&") {
			i++ // the file
		}
	}
	return args, true
}

func TestShellCommands_FindsEveryCall(t *testing.T) {
	for script, want := range map[string][][]string{
		"assay status":                                             {{"status"}},
		"bin/assay runs && ./assay prices 'a b'":                   {{"runs"}, {"prices", "a b"}},
		"sleep 5; MODULES=prices assay serve &":                    {{"serve"}},
		`x="$(assay config --json | jq .)"`:                        {{"config", "--json"}},
		"if ! assay healthcheck; then assay runs 2>&1 > log; fi":   {{"healthcheck"}, {"runs"}},
		"sudo -u assay assay status # how it is":                   {{"status"}},
		"docker compose exec --no-TTY assay assay status":          {{"status"}},
		"kubectl exec deploy/prices -- assay runs":                 {{"runs"}},
		"cat > assay.conf <<'EOF'\nassay none\nX\nEOF\nassay runs": {{"runs"}},
		"echo assay status; install assay /usr/bin/assay":          nil,
		"docker compose stop assay; curl http://assay/status":      nil,
	} {
		if got := shellCommands(script); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
	cron := "10 3 * * *  assay backup /backups/assay-$(date +\\%F).db && find /backups\n"
	if got, want := commandsOfBlock("cron", cron), [][]string{{"backup", "/backups/assay-X.db"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %q, want %q", cron, got, want)
	}
}

// TestPages_EveryCommandParses parses every command of the program on every page of the
// documentation, also in places where it cannot run in a test.
func TestPages_EveryCommandParses(t *testing.T) {
	root := filepath.Join("..", "..")
	files := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "client/go/README.md", "client/ts/README.md", "deploy/release/archive-readme.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") && path != "docs/reference/cli.md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, command := range testParser(t, io.Discard).Model.Children {
		names = append(names, command.Name)
	}
	call := regexp.MustCompile(`(?m)(?:^|[\s(/=])assay (?:` + strings.Join(names, "|") + `)\b`)
	parsed := 0
	for _, file := range files {
		page, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range commandsOf(string(page)) {
			parsed++
			if _, err := testParser(t, io.Discard).Parse(args.words); err != nil && (!args.sentence || !incomplete.MatchString(err.Error())) {
				t.Errorf("%s: got error %[3]v, want a valid command: assay %[2]q", file, args.words, err)
			}
		}
		for _, block := range pageBlock.FindAllStringSubmatch(string(page), -1) {
			if found, calls := len(commandsOfBlock(block[1], block[2])), len(call.FindAllString(block[2], -1)); block[1] != "" && found < calls {
				t.Errorf("%s: found %d commands, want at least %d: the test does not recognize a command in this block:\n%s", file, found, calls, block[2])
			}
		}
	}
	if parsed < 115 {
		t.Errorf("found %d commands, want at least 115: the test no longer recognizes them", parsed)
	}
}
