package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// example is a command line that works, and its purpose.
type example struct {
	args string // without "assay "
	does string
}

// exampler is a command with examples. Every command is one.
type exampler interface{ examples() []example }

// printHelp prints kong's help, then examples, and for the program as a whole
// the exit codes.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, helpTail(ctx.Selected()))
	return err
}

// helpTail returns what follows the list of flags. A nil node is the program
// itself.
func helpTail(node *kong.Node) string {
	var b strings.Builder
	if node == nil {
		b.WriteString("\nExit codes:\n")
		for _, m := range exitMeanings() {
			fmt.Fprintf(&b, "  %3d  %s\n", m.code, m.text)
		}
		b.WriteString("\nSettings come from a flag, else the environment, else --config, else the default.\n")
		return b.String()
	}
	shown := examplesOf(node)
	if len(shown) > 0 {
		b.WriteString("\nExamples:\n")
	}
	for _, e := range shown {
		fmt.Fprintf(&b, "  assay %s\n      %s\n", e.args, e.does)
	}
	if node.Target.CanAddr() {
		if serve, ok := reflect.TypeAssert[*serveCmd](node.Target.Addr()); ok {
			b.WriteString(serve.details())
		}
	}
	return b.String()
}

// examplesOf returns the examples of a command, or of those beneath it.
func examplesOf(node *kong.Node) []example {
	if node.Target.CanAddr() {
		if e, ok := reflect.TypeAssert[exampler](node.Target.Addr()); ok {
			return e.examples()
		}
	}
	var all []example
	for _, child := range node.Children {
		all = append(all, examplesOf(child)...)
	}
	return all
}
