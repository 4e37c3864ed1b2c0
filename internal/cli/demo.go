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

// demoCmd runs a server with invented data. It touches no other database than its own.
type demoCmd struct{}

func (*demoCmd) examples() []example {
	return []example{
		{"demo", "simulated markets, 25 users, one refresh of all their items, and the page"},
		{"demo --data-dir /tmp/demo --listen-addr 127.0.0.1:9000", "the same with another data directory and address"},
		{"demo --json", "print what the refresh did as JSON"},
	}
}

const (
	defaultDemoDir = "data/demo"
	// demoMark is the file that marks the directory of a demo.
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
	s.printf("demo: data in %s, prices from simulated markets; nothing here is real", cfg.DataDir)
	log := slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: max(cfg.LogLevel, slog.LevelWarn)}))
	return s.serve(ctx, cfg, log, func(ctx context.Context, url string) error {
		return c.show(ctx, s, cfg, url)
	})
}

// settings returns the configuration of the demo: its own directory and
// database, simulated markets, and port 8080 or another one that is free.
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

// free reports whether addr is free to listen on.
func free(ctx context.Context, addr string) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// claimDemoDir checks that dir belongs to a demo, and marks it if it is new. It refuses a
// directory with other content.
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
			text: dir + " is not empty and not the directory of a demo",
			hint: "name an empty directory with --data-dir",
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usageOfFile(err)
	}
	text := "This directory belongs to `assay demo`. All data in it are invented; you may delete it.\n"
	if err := os.WriteFile(mark, []byte(text), 0o600); err != nil {
		return usageOfFile(err)
	}
	return nil
}

// show fills the demo over its own API, refreshes all prices, and prints the result and
// how to sign in.
func (c *demoCmd) show(ctx context.Context, s *session, cfg *config.Config, url string) error {
	// By now the first start has created the secrets.
	api := clientOf(cfg, url)
	names := sim.NewCatalogue().Names()
	if err := fillDemo(ctx, api, names, s.Now, s.Stderr); err != nil {
		return err
	}
	// Forced, so that a second demo within the TTL has something to show.
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
	s.printf("\nThe page is at %s and stays up until Ctrl-C.", url)
	s.printf("  to look, sign in with %s", secretPlace(cfg, "MARKET_PRICE_SYNC_SECRET"))
	s.printf("  to do everything, sign in with %s", secretPlace(cfg, "ADMIN_API_TOKEN"))
	return nil
}

// demoExplained names items that the simulator prices by hand, such as one that all
// markets offer and one with an extreme ask.
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
	return "what is in " + filepath.Join(secretsDir(cfg), setting)
}
