// Package cli is the command line. It parses flags, calls a running server or runs one,
// and prints results as text or JSON. It owns exit codes, help and output. Other packages
// do the work.
package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Program is one run of the command line and everything that it touches.
type Program struct {
	Args    []string // without the name of the program
	Environ []string // as os.Environ returns it
	Stdin   io.Reader
	Stdout  io.Writer // results
	Stderr  io.Writer // progress, logs and errors
	Now     func() time.Time
}

// grammar is the whole command line.
type grammar struct {
	globals

	Serve       serveCmd       `cmd:"" group:"run" help:"Run the server until it receives SIGINT or SIGTERM."`
	Demo        demoCmd        `cmd:"" group:"run" help:"Run a server with simulated markets, users and inventories, to look around."`
	Refresh     refreshCmd     `cmd:"" group:"work" help:"Start a refresh of all prices."`
	Status      statusCmd      `cmd:"" group:"work" help:"Show what runs and how fresh the prices are."`
	Runs        runsCmd        `cmd:"" group:"work" help:"List the last runs, or show one and its items."`
	Cancel      cancelCmd      `cmd:"" group:"work" help:"Cancel a run."`
	RetryFailed retryFailedCmd `cmd:"" group:"work" help:"Start a run of the items that failed in another, or were skipped for their providers."`
	Prices      pricesCmd      `cmd:"" group:"work" help:"Show an item's price and every market's quote, or search items."`
	Inventory   inventoryCmd   `cmd:"" group:"work" help:"Push or show a user's inventory."`
	Provider    providerCmd    `cmd:"" group:"work" help:"List, test, pause and resume price providers."`
	Users       usersCmd       `cmd:"" group:"work" help:"Create or replace users."`
	Listings    listingsCmd    `cmd:"" group:"work" help:"List, show and cancel listings."`
	Trades      tradesCmd      `cmd:"" group:"work" help:"List, show, complete and reverse trades."`
	Wallet      walletCmd      `cmd:"" group:"work" help:"Show balances and ledger entries, and post to wallets."`
	Fees        feesCmd        `cmd:"" group:"work" help:"Refresh, show and roll back the fee rules, or quote a fee."`
	Events      eventsCmd      `cmd:"" group:"work" help:"List the last events."`
	Verify      verifyCmd      `cmd:"" group:"care" help:"Verify a user's wallet, or the whole ledger."`
	Backtest    backtestCmd    `cmd:"" group:"care" help:"Measure a pricing policy on a history of quotes."`
	Config      configCmd      `cmd:"" group:"care" help:"Show the effective settings and where each comes from."`
	Backup      backupCmd      `cmd:"" group:"care" help:"Write a copy of the database to a file, also while the server runs."`
	Restore     restoreCmd     `cmd:"" group:"care" help:"Put a backup in the database's place."`
	Copy        copyCmd        `cmd:"" group:"care" help:"Copy the database to another one: from SQLite to PostgreSQL, or back."`
	Migrate     migrateCmd     `cmd:"" group:"care" help:"Create or update the tables of the database; the server does this too."`
	Healthcheck healthcheckCmd `cmd:"" group:"care" help:"Check whether the server is healthy."`
	Completion  completionCmd  `cmd:"" group:"care" help:"Print a completion script for a shell."`
	Version     versionCmd     `cmd:"" group:"care" help:"Show the version."`
	Complete    completeCmd    `cmd:"" hidden:"" name:"__complete"`
}

// globals are the flags that every command takes.
type globals struct {
	File       *string `name:"config" placeholder:"FILE" help:"Read settings from this file."`
	DataDir    *string `placeholder:"DIR" help:"Directory of the database and of generated secrets (DATA_DIR)."`
	ListenAddr *string `placeholder:"HOST:PORT" help:"Address of the server (LISTEN_ADDR)."`
	LogLevel   *string `placeholder:"LEVEL" help:"How much is logged: debug, info, warn or error (LOG_LEVEL)."`
	JSON       bool    `help:"Print JSON instead of text."`
}

// given returns the settings that these flags set, by name. An empty value counts: it is
// an error, not the default.
func (g *globals) given() map[string]string {
	given := map[string]string{}
	for name, value := range map[string]*string{"DATA_DIR": g.DataDir, "LISTEN_ADDR": g.ListenAddr, "LOG_LEVEL": g.LogLevel} {
		if value != nil {
			given[name] = *value
		}
	}
	return given
}

// Run executes the command line and returns the exit code. It returns soon after ctx ends,
// as it does on a signal.
func (p Program) Run(ctx context.Context) int {
	var g grammar
	flags := newSettingFlags()
	exited := -1
	parser, err := newParser(&g, flags, p.Stdout, p.Stderr, func(code int) { exited = code })
	if err != nil {
		// The grammar is wrong, which every test finds.
		return p.fail(&g.globals, err)
	}
	parsed, err := parser.Parse(commandLine(p.Args))
	switch {
	case exited >= 0: // --help
		return exited
	case err != nil:
		// The parser may have stopped before it got to the flag.
		g.JSON = g.JSON || slices.Contains(p.Args, "--json")
		return p.fail(&g.globals, usage(err))
	}
	if g.File != nil && *g.File == "" {
		return p.fail(&g.globals, &usageError{text: "--config is empty; set a value or remove it", hint: seeHelp(nil)})
	}
	s := &session{
		Program: p, parser: parser, file: value(g.File), flags: g.given(),
		out: output{w: p.Stdout, json: g.JSON},
	}
	maps.Copy(s.flags, flags.given())
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(s)
	if wrong, ok := errors.AsType[*usageError](err); ok && wrong.hint == "" {
		wrong.hint = seeHelp(parsed.Selected())
	}
	return p.fail(&g.globals, err)
}

// commandLine translates common forms: no arguments and "help" show the help, --version
// shows the version.
func commandLine(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case slices.Contains(args, "--version") && !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }):
		return append([]string{"version"}, slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--version" })...)
	}
	return args
}

// newParser builds the parser of g and flags.
func newParser(g *grammar, flags settingFlags, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(g,
		flags.option(),
		kong.Name("assay"),
		kong.Description("Assay keeps the prices of game items fresh."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Run:"},
			{Key: "work", Title: "Work with a running server:"},
			{Key: "care", Title: "Set up and look after:"},
		}),
	)
}

// fail reports err, if there is one, and returns the exit code for it.
func (p Program) fail(g *globals, err error) int {
	code := exitCode(err)
	if err == nil || errors.Is(err, errReported) {
		return code
	}
	if g.JSON {
		_ = output{w: p.Stderr, json: true}.object(newFailure(err, code))
		return code
	}
	printError(p.Stderr, err)
	return code
}
