package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"assay/internal/config"
	"assay/internal/provider/sim"
)

// demoCmd runs a server with generated data in a separate database.
type demoCmd struct{}

func (*demoCmd) examples() []example {
	return []example{
		{"demo", "simulate markets and 25 users, refresh all their items and serve the page"},
		{"demo --data-dir /tmp/demo --listen-addr 127.0.0.1:9000", "use another data directory and address"},
		{"demo --json", "print the result of the refresh as JSON"},
	}
}

const (
	defaultDemoDir = "data/demo"
	// demoMark is a file in the data directory of a demo.
	demoMark = "assay-demo"
)

// Run prepares the demo and serves it until ctx ends.
func (c *demoCmd) Run(ctx context.Context, s *session) error {
	cfg, err := c.settings(ctx, s)
	if err != nil {
		return err
	}
	if err := claimDemoDir(cfg.DataDir); err != nil {
		return err
	}
	s.printf("demo: data in %s, simulated markets; all data are generated", cfg.DataDir)
	log := slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: max(cfg.LogLevel, slog.LevelWarn)}))
	return s.serve(ctx, cfg, log, func(ctx context.Context, url string) error {
		return c.show(ctx, s, cfg, url)
	})
}

// settings returns the configuration of the demo: simulated markets and a separate directory
// and database. The port is 8080, or another port if 8080 is in use.
func (c *demoCmd) settings(ctx context.Context, s *session) (*config.Config, error) {
	given, err := s.settings(nil)
	if err != nil {
		return nil, err
	}
	over := map[string]string{"MARKET_PRICE_PROVIDERS": sim.Name}
	for _, set := range given.Effective() {
		standard := set.Origin == "default"
		switch {
		case set.Name == "DATA_DIR" && standard:
			over["DATA_DIR"] = filepath.FromSlash(defaultDemoDir)
		case set.Name == "DATABASE_URL" && !standard:
			return nil, &usageError{
				text: "DATABASE_URL is set (" + set.Origin + "), but the demo uses its own database only",
				hint: "unset it; --data-dir sets the directory of the demo",
			}
		case set.Name == "LISTEN_ADDR" && standard && !free(ctx, given.ListenAddr):
			s.printf("%s is in use; listening on another port", given.ListenAddr)
			over["LISTEN_ADDR"] = "127.0.0.1:0"
		}
	}
	return s.settings(over)
}

// free reports whether a server can listen on addr.
func free(ctx context.Context, addr string) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// claimDemoDir marks an empty or new dir as the directory of a demo. It rejects a directory
// with other content.
func claimDemoDir(dir string) error {
	mark := filepath.Join(dir, demoMark)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return usageOfFile(err)
	case len(entries) > 0:
		return &usageError{
			text: dir + " is not empty and does not belong to a demo",
			hint: "name an empty directory with --data-dir",
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usageOfFile(err)
	}
	text := "This directory belongs to `assay demo`. All its data are generated. You may delete it.\n"
	if err := os.WriteFile(mark, []byte(text), 0o600); err != nil {
		return usageOfFile(err)
	}
	return nil
}

// show creates the demo data with the API, refreshes all prices, and prints the result and how
// to sign in.
func (c *demoCmd) show(ctx context.Context, s *session, cfg *config.Config, url string) error {
	// The start of the server has created the secrets.
	api := clientOf(cfg, url)
	names := sim.NewCatalog().Names()
	if err := fillDemo(ctx, api, names, s.Now, s.Stderr); err != nil {
		return err
	}
	// A forced refresh also updates prices within the TTL, so a second demo shows results.
	run, err := call[startedRun](ctx, api, refreshRequest(true, false))
	if err != nil {
		return err
	}
	job, err := awaitJob(ctx, s, api, run.Job)
	if err != nil {
		return err
	}
	report, err := gatherDemo(ctx, api, job, names, demoExplained())
	if err != nil {
		return err
	}
	if err := s.out.result(report, report.write); err != nil {
		return err
	}
	s.printf("\nThe page is at %s. Press Ctrl-C to stop the demo.", url)
	s.printf("  to read, sign in with %s", secretPlace(cfg, "MARKET_PRICE_SYNC_SECRET"))
	s.printf("  to change data, sign in with %s", secretPlace(cfg, "ADMIN_API_TOKEN"))
	return nil
}

// demoExplained returns the items that the demo explains. The simulator has special prices for
// them: one item is on all markets, another has an extreme ask.
func demoExplained() []string {
	return []string{"AK-47 | Redline (Field-Tested)", "★ Karambit", "Sealed Graffiti | Loose Change (Chalk White)"}
}

// secretPlace returns the location of a secret.
func secretPlace(cfg *config.Config, setting string) string {
	for _, set := range cfg.Effective() {
		if set.Name == setting && !strings.HasPrefix(set.Origin, "generated ") {
			return setting + " (" + set.Origin + ")"
		}
	}
	return "the content of " + filepath.Join(secretsDir(cfg), setting)
}
