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

// providerCmd contains the commands for price providers. The commands test and names send
// requests to the provider. The others send requests to the running server.
type providerCmd struct {
	List   providerListCmd   `cmd:"" help:"List the providers of the running server and their health."`
	Test   providerTestCmd   `cmd:"" help:"Send one cheap request to a provider and explain the result. Needs no server."`
	Names  providerNamesCmd  `cmd:"" help:"List the names in a provider's catalog, one per line. Needs no server."`
	Pause  providerPauseCmd  `cmd:"" help:"Stop requests to a provider until it is resumed."`
	Resume providerResumeCmd `cmd:"" help:"Resume a paused provider."`
	Accept providerAcceptCmd `cmd:"" help:"End the quarantine of a provider's markets."`
}

// openProvider opens a provider by name, even if it is not configured. The function change,
// which may be nil, adjusts its options. The caller must close the set.
func (s *session) openProvider(ctx context.Context, name string, change func(*config.Config, *app.ProviderOptions)) (provider.Provider, *app.ProviderSet, error) {
	if !slices.Contains(app.Providers(), name) {
		return nil, nil, &usageError{
			text: fmt.Sprintf("unknown provider %q: use one of %s", name, strings.Join(app.Providers(), ", ")),
		}
	}
	cfg, err := s.settings(map[string]string{"MARKET_PRICE_PROVIDERS": name})
	if err != nil {
		return nil, nil, err
	}
	o := app.ProviderOptions{Config: cfg, Secret: cfg.OutsideSecret, Now: s.Now, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(cfg, &o)
	}
	set, err := app.OpenProviders(ctx, o)
	if err != nil {
		return nil, nil, settingsAtFault(err)
	}
	return set.List[0], set, nil
}

var (
	// errProviderUnread means that a provider did not send the expected response.
	errProviderUnread = errors.New("the provider could not be read")
	// errProviderFailed is errProviderUnread with an already printed reason.
	errProviderFailed = fmt.Errorf("%w: %w", errProviderUnread, errReported)
)

// failureText describes why a provider cannot be read.
func failureText(err error) string {
	var e *provider.Error
	if !errors.As(err, &e) {
		return printable(err.Error())
	}
	words := map[provider.Kind]string{
		provider.KindConnect:     "the provider is unreachable: check the address or path and your network",
		provider.KindTimeout:     "no response in time",
		provider.KindCut:         "the connection closed during the response",
		provider.KindRateLimited: "the provider limits the request rate: retry later",
		provider.KindAuth:        "the provider does not accept the key: the key is missing, wrong or lacks a permission",
		provider.KindServer:      "the provider reports an internal error: retry later",
		provider.KindStatus:      "the provider rejected the request: check the address",
		provider.KindProtocol:    "the response has no prices: check the address",
		provider.KindTooLarge:    "the response is too large: check the address",
		provider.KindBlocked:     "the provider's address is not public: set the provider's BASE_URL to allow it",
	}[e.Kind]
	if words == "" {
		return printable(e.Error())
	}
	return words + " (" + printable(e.Error()) + ")"
}
