package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"assay/internal/app"
	"assay/internal/config"
)

// serveCmd runs the server.
type serveCmd struct{}

func (*serveCmd) examples() []example {
	return []example{
		{"serve", "run with the settings of the environment; the first start creates secrets and logs their file names"},
		{"serve --config /etc/assay.conf", "run with the settings of a file"},
		{"serve --market-price-providers sim --market-price-ttl 30m", "every setting except a secret also has a flag"},
	}
}

// details lists the settings for the help. `assay config` shows their values.
func (*serveCmd) details() string {
	var b strings.Builder
	b.WriteString("\nSettings (environment or --config; those that are not secrets also as flags, TRADE_HOLD as --trade-hold):\n")
	for _, d := range config.Definitions(app.Providers()) {
		name := d.Name
		if d.File {
			name += ", " + d.Name + "_FILE"
		}
		if d.Default != "" {
			name += " = " + d.Default
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", name, d.Help)
	}
	return b.String()
}

func (c *serveCmd) Run(ctx context.Context, s *session) error {
	cfg, err := s.settings(nil)
	if err != nil {
		return err
	}
	return s.serve(ctx, cfg, s.logger(cfg), nil)
}

// A server with a read-only database checks at this interval whether the database is writable, and
// restarts when it is. The interval doubles with each restart that finds the database read-only again.
const (
	firstRecheck = 5 * time.Second
	lastRecheck  = 5 * time.Minute
)

// serve runs a server until ctx ends. It starts a new server when a read-only database has
// become writable. It calls during, which may be nil, when the server accepts requests. An
// error of during ends the server.
func (s *session) serve(ctx context.Context, cfg *config.Config, log *slog.Logger, during func(ctx context.Context, url string) error) error {
	err := app.ErrWritable
	for recheck := firstRecheck; errors.Is(err, app.ErrWritable); recheck = min(2*recheck, lastRecheck) {
		if err = s.serveOnce(ctx, cfg, log, recheck, during); ctx.Err() != nil && errors.Is(err, app.ErrWritable) {
			err = nil // ctx has ended the server
		}
	}
	return err
}

func (s *session) serveOnce(ctx context.Context, cfg *config.Config, log *slog.Logger, recheck time.Duration, during func(ctx context.Context, url string) error) error {
	// Without Options.Now the store uses the clock of the database.
	srv, err := app.New(ctx, app.Options{Config: cfg, Version: readBuild().Version, Logger: log, Recheck: recheck})
	if err != nil {
		return settingsAtFault(err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-srv.Ready():
	}
	if during != nil {
		if err := during(ctx, srv.URL()); err != nil && ctx.Err() == nil {
			stop(err)
			return errors.Join(err, <-done)
		}
	}
	return <-done
}

// await waits for the database of a command. It logs that it waits.
func (s *session) await(ctx context.Context, cfg *config.Config, d config.Database) error {
	return app.Await(ctx, d, cfg.DatabaseWait, s.logger(cfg))
}

// logger returns a logger to standard error with the configured level and format.
func (s *session) logger(cfg *config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == config.LogJSON {
		return slog.New(slog.NewJSONHandler(s.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(s.Stderr, options))
}
