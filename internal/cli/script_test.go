package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"assay": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(Program{
			Args: os.Args[1:], Environ: os.Environ(),
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
		}.Run(ctx))
	}})
}

// TestScript runs every script in testdata/script, each against a new fake server. Set
// ASSAY_UPDATE=1 to update the expected output.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("ASSAY_UPDATE") == "1",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			server := newFakeServer(env.T().(testing.TB))
			env.Setenv("LISTEN_ADDR", strings.TrimPrefix(server.URL, "http://"))
			env.Setenv("MARKET_PRICE_SYNC_SECRET", fakeMarketSecret)
			env.Setenv("PLATFORM_API_TOKEN", fakePlatformToken)
			env.Setenv("ADMIN_API_TOKEN", fakeAdminToken)
			env.Setenv("COLUMNS", "100")
			env.Setenv("ODD", "Sealed Graffiti | A/B\n? ") // scripts cannot contain this newline
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a command and checks its exit code, as in "exits 2 assay status --x".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("got exit code %s (%v), want %s", got, err, args[0])
	}
}
