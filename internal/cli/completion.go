package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints a script that teaches a shell our commands.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) examples() []example {
	return []example{
		{"completion bash", `for now: source <(assay completion bash)`},
		{"completion zsh", `for good: assay completion zsh > "${fpath[1]}/_assay"`},
		{"completion fish", "for good: assay completion fish > ~/.config/fish/completions/assay.fish"},
	}
}

// The scripts hand the words typed so far to `assay __complete`, which knows
// the grammar; so they never grow old.
const (
	bashCompletion = `_assay() {
	local IFS=$'\n'
	COMPREPLY=($(assay __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
	if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); fi
}
complete -o filenames -F _assay assay
`
	zshCompletion = `#compdef assay
_assay() {
	local -a found
	found=(${(f)"$(assay __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	if (( ${#found} )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = "_assay" ]; then _assay "$@"; else compdef _assay assay; fi
`
	fishCompletion = `function __assay_complete
	set -l typed (commandline -opc) (commandline -ct)
	assay __complete -- $typed[2..] 2>/dev/null
end
complete -c assay -a '(__assay_complete)'
`
)

// Run prints the script.
func (c *completionCmd) Run(s *session) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	return s.out.result(map[string]string{"shell": c.Shell, "script": script}, func(w io.Writer) { _, _ = io.WriteString(w, script) })
}

// completeCmd answers a completion script: the last word is the one to be
// completed, those before it are typed already.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what the last word may become, one candidate a line.
func (c *completeCmd) Run(s *session) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, candidate := range candidates(s.parser.Model.Node, words[:len(words)-1], words[len(words)-1]) {
		if _, err := fmt.Fprintln(s.Stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// candidates lists subcommands and flags that begin with word, for the command
// that the words typed before it name.
func candidates(node *kong.Node, typed []string, word string) []string {
	for _, w := range typed {
		for _, child := range node.Children {
			if child.Name == w && !child.Hidden {
				node = child
				break
			}
		}
	}
	var found []string
	if strings.HasPrefix(word, "-") {
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				if name := "--" + flag.Name; strings.HasPrefix(name, word) {
					found = append(found, name)
				}
			}
		}
		return found
	}
	for _, child := range node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, word) {
			found = append(found, child.Name)
		}
	}
	for _, arg := range node.Positional {
		for _, value := range arg.EnumSlice() {
			if value != "" && strings.HasPrefix(value, word) {
				found = append(found, value)
			}
		}
	}
	return found
}
