package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"assay/internal/app"
	"assay/internal/config"
	"assay/internal/provider"
)

// providerCmd holds the commands about price providers. test and names send
// requests to the provider itself; the others talk to the running server.
type providerCmd struct {
	List   providerListCmd   `cmd:"" help:"List the providers of the running server and their health."`
	Test   providerTestCmd   `cmd:"" help:"Send one cheap request to a provider and explain the result. No server is needed."`
	Names  providerNamesCmd  `cmd:"" help:"List the names that a provider knows, one per line. No server is needed."`
	Pause  providerPauseCmd  `cmd:"" help:"Send no more requests to a provider until it is resumed."`
	Resume providerResumeCmd `cmd:"" help:"Resume a paused provider."`
	Accept providerAcceptCmd `cmd:"" help:"End the quarantine of a provider's markets."`
}

// openProvider makes the provider of that name, configured or not, ready to be
// asked. also, which may be nil, changes what it is made of. The caller closes the
// set.
func (s *session) openProvider(ctx context.Context, name string, also func(*config.Config, *app.ProviderOptions)) (provider.Provider, *app.ProviderSet, error) {
	if !slices.Contains(app.Providers(), name) {
		return nil, nil, &usageError{
			text: fmt.Sprintf("there is no provider %q; there are %s", name, strings.Join(app.Providers(), ", ")),
		}
	}
	cfg, err := s.settings(map[string]string{"MARKET_PRICE_PROVIDERS": name})
	if err != nil {
		return nil, nil, err
	}
	o := app.ProviderOptions{Config: cfg, Secret: cfg.OutsideSecret, Now: s.Now, Logger: slog.New(slog.DiscardHandler)}
	if also != nil {
		also(cfg, &o)
	}
	set, err := app.OpenProviders(ctx, o)
	if err != nil {
		return nil, nil, settingsAtFault(err)
	}
	return set.List[0], set, nil
}

var (
	// errProviderUnread means that a provider was asked and did not answer as it
	// should.
	errProviderUnread = errors.New("the provider could not be read")
	// errProviderFailed is the same, when the failure is already printed.
	errProviderFailed = fmt.Errorf("%w: %w", errProviderUnread, errReported)
)

// failureText describes in plain words why a provider could not be read.
func failureText(err error) string {
	var e *provider.Error
	if !errors.As(err, &e) {
		return printable(err.Error())
	}
	words := map[provider.Kind]string{
		provider.KindConnect:     "it cannot be reached: is the address or path right, and can this machine reach it?",
		provider.KindTimeout:     "it did not answer in time",
		provider.KindCut:         "the connection ended within the answer",
		provider.KindRateLimited: "it limits the request rate: retry later",
		provider.KindAuth:        "it does not accept the key: the key is missing, wrong or lacks a permission",
		provider.KindServer:      "it reports an internal error: retry later",
		provider.KindStatus:      "it refuses the request: is the address right?",
		provider.KindProtocol:    "its response has no prices: is the address right?",
		provider.KindTooLarge:    "its answer is larger than can be right",
		provider.KindBlocked:     "its address is not a public one: name it in the provider's BASE_URL to allow it",
	}[e.Kind]
	if words == "" {
		return printable(e.Error())
	}
	return words + " (" + printable(e.Error()) + ")"
}
