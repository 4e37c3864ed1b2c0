package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"

	"assay/internal/app"
	"assay/internal/config"
)

// session is the environment of a command.
type session struct {
	Program
	parser *kong.Kong
	out    output
	file   string            // --config
	flags  map[string]string // settings given as flags, by name
}

// settings returns the configuration of a server started with the same flags and environment.
// The values in over take precedence over all others.
func (s *session) settings(over map[string]string) (*config.Config, error) {
	return config.Load(s.options(over))
}

func (s *session) options(over map[string]string) config.Options {
	flags := maps.Clone(s.flags)
	maps.Copy(flags, over)
	return config.Options{Flags: flags, Environ: s.Environ, File: s.file, Providers: app.Providers()}
}

// server returns a client of the running server, with the secrets of the server.
func (s *session) server() (*client, error) {
	cfg, err := s.settings(nil)
	if err != nil {
		return nil, err
	}
	return clientOf(cfg, baseURL(cfg.ListenAddr)), nil
}

// clientOf returns a client with the newest secrets in cfg.
func clientOf(cfg *config.Config, base string) *client {
	return newClient(base, map[string]credential{
		config.RoleMarket:   credentialOf(cfg, "MARKET_PRICE_SYNC_SECRET", "x-market-sync-secret", "", cfg.SyncSecrets),
		config.RolePlatform: credentialOf(cfg, "PLATFORM_API_TOKEN", "Authorization", "Bearer ", cfg.PlatformTokens),
		config.RoleAdmin:    credentialOf(cfg, "ADMIN_API_TOKEN", "Authorization", "Bearer ", cfg.AdminTokens),
	})
}

// show sends r to the running server and prints the response.
func show[T any](ctx context.Context, s *session, r request, text func(io.Writer, *T)) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	response, err := call[T](ctx, api, r)
	if err != nil {
		return err
	}
	return s.out.result(response, func(w io.Writer) { text(w, &response) })
}

// credentialOf returns the credential with the last of a list of secrets. During a rotation
// the list is "old,new".
func credentialOf(cfg *config.Config, setting, header, prefix string, secrets []config.Secret) credential {
	if len(secrets) == 0 {
		return credential{missing: &missingSecret{setting: setting, dir: cfg.DataDir}}
	}
	c := credential{header: header, value: prefix + secrets[len(secrets)-1].Reveal(), origin: setting}
	for _, set := range cfg.Effective() {
		if set.Name == setting {
			c.origin = setting + " (" + set.Origin + ")"
		}
	}
	return c
}

// missingSecret means that a command needs a secret that is not configured.
type missingSecret struct{ setting, dir string }

func (e *missingSecret) Error() string {
	return e.setting + " is not set, and " + filepath.Join(e.dir, "secrets") + " does not contain it"
}

// Hint describes the two ways to provide a secret.
func (e *missingSecret) Hint() string {
	return "set it, or set --data-dir to the data directory of the server, which creates secrets at its first start"
}

// baseURL returns the local URL of a server that listens on addr.
func baseURL(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr // Load has checked it
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// isTerminal reports whether w is a terminal that can move the cursor.
func (s *session) isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return false
	}
	return s.env("TERM") != "dumb"
}

// env returns an environment variable.
func (p Program) env(name string) string {
	for _, pair := range p.Environ {
		if len(pair) > len(name) && pair[len(name)] == '=' && pair[:len(name)] == name {
			return pair[len(name)+1:]
		}
	}
	return ""
}

// printf writes a line to standard error.
func (s *session) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Stderr, format+"\n", args...)
}
