package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// example is a valid command line and its purpose.
type example struct {
	args string // without "assay "
	does string
}

// exampler is a command with examples. Every command implements it.
type exampler interface{ examples() []example }

// printHelp prints kong's help and examples. The help of the program also lists the exit
// codes.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, helpTail(ctx.Selected()))
	return err
}

// helpTail returns the text after the flags. A nil node means the program.
func helpTail(node *kong.Node) string {
	var b strings.Builder
	if node == nil {
		b.WriteString("\nExit codes:\n")
		for _, m := range exitMeanings() {
			fmt.Fprintf(&b, "  %3d  %s\n", m.code, m.text)
		}
		b.WriteString("\nThe value of a setting comes from its flag, the environment, --config or the default, in this order.\n")
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

// examplesOf returns the examples of a command or of its subcommands.
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
