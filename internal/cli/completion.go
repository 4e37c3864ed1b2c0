package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"assay/internal/app"
	"assay/internal/config"
	"assay/internal/view"
)

// completionCmd prints a script that completes commands in a shell.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

func (*completionCmd) examples() []example {
	return []example{
		{"completion bash", `in this shell: source <(assay completion bash)`},
		{"completion zsh", `in every shell: assay completion zsh > "${fpath[1]}/_assay"`},
		{"completion fish", "in every shell: assay completion fish > ~/.config/fish/completions/assay.fish"},
		{"completion powershell", "in this shell: assay completion powershell | Out-String | Invoke-Expression"},
	}
}

// Each script passes the typed words to `assay __complete`. Therefore the scripts need no
// update when commands change.
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
	powershellCompletion = `Register-ArgumentCompleter -Native -CommandName assay -ScriptBlock {
	param($wordToComplete, $commandAst, $cursorPosition)
	$typed = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
		ForEach-Object { $_.ToString().Trim('"', "'") })
	assay __complete "--" @typed "$wordToComplete" 2>$null | ForEach-Object {
		$text = if ($_ -match '[^\w.:/=-]') { "'" + $_.Replace("'", "''") + "'" } else { $_ }
		[System.Management.Automation.CompletionResult]::new($text, $_, 'ParameterValue', $_)
	}
}
`
)

func (c *completionCmd) Run(s *session) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion, "powershell": powershellCompletion}[c.Shell]
	return s.out.result(map[string]string{"shell": c.Shell, "script": script}, func(w io.Writer) { _, _ = io.WriteString(w, script) })
}

// completeCmd prints completions for the scripts. The last word is the one to complete.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the candidates for the last word, one per line.
func (c *completeCmd) Run(ctx context.Context, s *session) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	typed, word := words[:len(words)-1], words[len(words)-1]
	node, args := commandOf(s.parser.Model.Node, typed)
	var found []string
	name, begun, joined := strings.Cut(word, "=")
	switch flag := valueFlag(node, last(typed)); {
	case flag != nil:
		found = s.valuesLike(ctx, flag.Value, word)
	case joined && valueFlag(node, name) != nil:
		for _, value := range s.valuesLike(ctx, valueFlag(node, name).Value, begun) {
			found = append(found, name+"="+value)
		}
	case strings.HasPrefix(word, "-"):
		found = flagsLike(node, word)
	default:
		found = commandsLike(node, word)
		if len(args) < len(node.Positional) {
			found = append(found, s.valuesLike(ctx, node.Positional[len(args)], word)...)
		}
	}
	for _, candidate := range found {
		if strings.ContainsFunc(candidate, unicode.IsControl) {
			continue // a shell reads one candidate per line
		}
		if _, err := fmt.Fprintln(s.Stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// commandOf returns the command that the typed words select, and its arguments.
func commandOf(node *kong.Node, typed []string) (*kong.Node, []string) {
	var args []string
	for i, w := range typed {
		if i > 0 && valueFlag(node, typed[i-1]) != nil {
			continue // value of a flag
		}
		if child := childNamed(node, w); child != nil && len(args) == 0 {
			node = child
		} else if !strings.HasPrefix(w, "-") {
			args = append(args, w)
		}
	}
	return node, args
}

func last(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// valueFlag returns the flag that word names, if the flag takes a value, and otherwise nil. It
// searches a command and its default subcommand.
func valueFlag(node *kong.Node, word string) *kong.Flag {
	groups := node.AllFlags(false)
	if node.DefaultCmd != nil {
		groups = append(groups, node.DefaultCmd.AllFlags(false)...)
	}
	for _, group := range groups {
		for _, flag := range group {
			if word == "--"+flag.Name && !flag.IsBool() {
				return flag
			}
		}
	}
	return nil
}

func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name && !child.Hidden {
			return child
		}
	}
	return nil
}

func flagsLike(node *kong.Node, word string) (found []string) {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if name := "--" + flag.Name; strings.HasPrefix(name, word) {
				found = append(found, name)
			}
		}
	}
	return found
}

func commandsLike(node *kong.Node, word string) (found []string) {
	for _, child := range node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, word) {
			found = append(found, child.Name)
		}
	}
	return found
}

// These limit a completion's requests.
const (
	completionTimeout = time.Second
	completionCount   = 50
)

// valuesLike lists values of an argument or flag that start with word. Runs, items and users
// come from the server. If the server does not respond, the list is empty.
func (s *session) valuesLike(ctx context.Context, arg *kong.Value, word string) (found []string) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	all := arg.EnumSlice()
	switch arg.Tag.Get("complete") {
	case "provider":
		all = app.Providers()
	case "game":
		all = []string{"730", "570", "440", "252490"}
	case "market":
		all = s.marketNames(ctx)
	case "run":
		r := request{path: marketPrices + "/jobs", query: url.Values{}, as: config.RoleMarket}
		all = listed(ctx, s, r, func(j *view.Job) string { return j.ID })
	case "item":
		if word == "" {
			return nil
		}
		r := request{path: itemsPath, query: filter("q", word), as: config.RoleMarket}
		all = listed(ctx, s, r, func(it *view.ItemPrice) string { return it.MarketHashName })
	case "user":
		r := request{path: "/api/users", query: filter("prefix", word), as: config.RolePlatform}
		all = listed(ctx, s, r, func(u *view.User) string { return u.UserID })
	}
	for _, value := range all {
		if value != "" && strings.HasPrefix(value, word) && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	return found
}

// marketNames lists the markets of all providers of the server.
func (s *session) marketNames(ctx context.Context) (all []string) {
	api, err := s.server()
	if err != nil {
		return nil
	}
	debug, _ := call[view.ProvidersDebug](ctx, api, providersRequest()) // empty after an error
	for i := range debug.Providers {
		for j := range debug.Providers[i].Markets {
			all = append(all, debug.Providers[i].Markets[j].Market)
		}
	}
	return all
}

func listed[T any](ctx context.Context, s *session, r request, text func(*T) string) (all []string) {
	api, err := s.server()
	if err != nil {
		return nil
	}
	page, err := listAll[T](ctx, api, r, completionCount)
	if err != nil {
		return nil
	}
	for i := range page.Items {
		all = append(all, text(&page.Items[i]))
	}
	return all
}
