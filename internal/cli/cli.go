// Package cli implements the command line. It parses flags, starts a server or sends requests
// to a running one, and prints results as text or JSON. It also defines exit codes, help and
// output formats.
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

// Program is one run of the command line with its input and output.
type Program struct {
	Args    []string // without the program name
	Environ []string // in the format of os.Environ
	Stdin   io.Reader
	Stdout  io.Writer // results
	Stderr  io.Writer // progress, logs and errors
	Now     func() time.Time
}

// grammar declares all commands.
type grammar struct {
	globals

	Serve       serveCmd       `cmd:"" group:"run" help:"Run the server until it receives SIGINT or SIGTERM."`
	Demo        demoCmd        `cmd:"" group:"run" help:"Run a server with simulated markets, users and inventories, to look around."`
	Refresh     refreshCmd     `cmd:"" group:"work" help:"Start a refresh of all prices."`
	Status      statusCmd      `cmd:"" group:"work" help:"Show the current refresh and how fresh the prices are."`
	Runs        runsCmd        `cmd:"" group:"work" help:"List the last runs, or show one and its items."`
	Cancel      cancelCmd      `cmd:"" group:"work" help:"Cancel a run."`
	RetryFailed retryFailedCmd `cmd:"" group:"work" help:"Retry the items that failed in a run, or were skipped because of a budget, pause or backoff."`
	Prices      pricesCmd      `cmd:"" group:"work" help:"Show an item's price and every market's quote, or search items."`
	Export      exportCmd      `cmd:"" group:"work" help:"Write all prices to a Parquet, CSV or NDJSON file."`
	Inventory   inventoryCmd   `cmd:"" group:"work" help:"Push or show a user's inventory."`
	Provider    providerCmd    `cmd:"" group:"work" help:"List, test, pause and resume price providers."`
	Users       usersCmd       `cmd:"" group:"work" help:"Create or replace users."`
	Listings    listingsCmd    `cmd:"" group:"work" help:"List, show and cancel listings."`
	Trades      tradesCmd      `cmd:"" group:"work" help:"List, show, complete and reverse trades."`
	Wallet      walletCmd      `cmd:"" group:"work" help:"Show balances and ledger entries, and post to wallets."`
	Fees        feesCmd        `cmd:"" group:"work" help:"Refresh, show and roll back the fee rules, or quote a fee."`
	Keys        keysCmd        `cmd:"" group:"work" help:"List, create, rotate and revoke API keys."`
	Operators   operatorsCmd   `cmd:"" group:"work" help:"List and create operators of the page, and set their role, state and password."`
	Webhooks    webhooksCmd    `cmd:"" group:"work" help:"List, create, test, rotate and delete webhooks, and send messages again."`
	Audit       auditCmd       `cmd:"" group:"work" help:"List the requests that changed something."`
	Events      eventsCmd      `cmd:"" group:"work" help:"List the last events, or follow all events."`
	MCP         mcpCmd         `cmd:"" name:"mcp" group:"work" help:"Offer prices as tools to a language model (Model Context Protocol)."`
	Verify      verifyCmd      `cmd:"" group:"maintenance" help:"Verify a user's wallet, or the whole ledger."`
	Backtest    backtestCmd    `cmd:"" group:"maintenance" help:"Measure a pricing policy with historical quotes."`
	Config      configCmd      `cmd:"" group:"maintenance" help:"Show the effective settings and their origins."`
	Backup      backupCmd      `cmd:"" group:"maintenance" help:"Write a copy of the database to a file, even while the server runs."`
	Restore     restoreCmd     `cmd:"" group:"maintenance" help:"Replace the database with a backup."`
	Copy        copyCmd        `cmd:"" group:"maintenance" help:"Copy the database to another database, such as from SQLite to PostgreSQL."`
	Migrate     migrateCmd     `cmd:"" group:"maintenance" help:"Create or update the tables of the database. The server also does this."`
	Healthcheck healthcheckCmd `cmd:"" group:"maintenance" help:"Check whether the server is healthy."`
	Completion  completionCmd  `cmd:"" group:"maintenance" help:"Print a completion script for a shell."`
	Version     versionCmd     `cmd:"" group:"maintenance" help:"Show the version."`
	Complete    completeCmd    `cmd:"" hidden:"" name:"__complete"`
}

// globals are the flags of every command.
type globals struct {
	File       *string `name:"config" placeholder:"FILE" help:"Read settings from this file."`
	DataDir    *string `placeholder:"DIR" help:"Directory of the database and of generated secrets (DATA_DIR)."`
	ListenAddr *string `placeholder:"HOST:PORT" help:"Address of the server (LISTEN_ADDR)."`
	LogLevel   *string `placeholder:"LEVEL" help:"Log level: debug, info, warn or error (LOG_LEVEL)."`
	JSON       bool    `help:"Print JSON instead of text."`
}

// given returns the settings set by these flags, by name. It includes empty values, which are
// errors and do not select the default.
func (g *globals) given() map[string]string {
	given := map[string]string{}
	for name, value := range map[string]*string{"DATA_DIR": g.DataDir, "LISTEN_ADDR": g.ListenAddr, "LOG_LEVEL": g.LogLevel} {
		if value != nil {
			given[name] = *value
		}
	}
	return given
}

// Run executes the command line and returns the exit code. It returns soon after ctx ends, for
// example because of a signal.
func (p Program) Run(ctx context.Context) int {
	var g grammar
	flags := newSettingFlags()
	exited := -1
	parser, err := newParser(&g, flags, p.Stdout, p.Stderr, func(code int) { exited = code })
	if err != nil {
		// This is a bug in the grammar. Every test detects it.
		return p.fail(&g.globals, err)
	}
	parsed, err := parser.Parse(commandLine(p.Args))
	switch {
	case exited >= 0: // --help
		return exited
	case err != nil:
		// The parser may have stopped before it reached --json.
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

// commandLine translates common forms. No arguments and "help" show the help. --version shows
// the version.
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

// newParser returns a parser for g and flags.
func newParser(g *grammar, flags settingFlags, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(g,
		flags.option(),
		kong.Name("assay"),
		kong.Description("Assay keeps the prices of game items up to date."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Run:"},
			{Key: "work", Title: "Work with a running server:"},
			{Key: "maintenance", Title: "Set up and maintain:"},
		}),
	)
}

// fail prints err, if any, and returns its exit code.
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
