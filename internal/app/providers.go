package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"assay/internal/config"
	"assay/internal/fault"
	"assay/internal/provider"
	"assay/internal/provider/cs2cap"
	"assay/internal/provider/csfloat"
	"assay/internal/provider/marketcsgo"
	"assay/internal/provider/pricelist"
	"assay/internal/provider/pricempire"
	"assay/internal/provider/sim"
	"assay/internal/provider/skinport"
	"assay/internal/provider/steam"
	"assay/internal/provider/waxpeer"
	"assay/internal/view"
)

// opener creates a provider from the configuration.
type opener func(context.Context, ProviderOptions, provider.Options) (provider.Provider, error)

// openers returns the openers of all price providers, by name.
func (s *ProviderSet) openers() map[string]opener {
	return map[string]opener{
		pricempire.Name: s.openPricempire,
		cs2cap.Name:     s.openCs2cap,
		csfloat.Name:    s.openCSFloat,
		marketcsgo.Name: s.openMarketCSGO,
		pricelist.Name:  s.openPricelist,
		sim.Name:        s.openSim,
		skinport.Name:   s.openSkinport,
		steam.Name:      s.openSteam,
		waxpeer.Name:    s.openWaxpeer,
	}
}

// Providers lists the names of all price providers.
func Providers() []string { return slices.Sorted(maps.Keys((*ProviderSet)(nil).openers())) }

// ProviderSet holds the configured providers and their clients.
type ProviderSet struct {
	List         []provider.Provider
	Clients      map[string]provider.Clients // by provider
	Unconfigured []view.Unconfigured

	simulator *http.Server
}

// ProviderOptions are the dependencies of providers.
type ProviderOptions struct {
	Config *config.Config
	Secret func(name string) (string, error) // returns the value of a secret in a price list
	// Allowance returns the budget of a provider's host that all processes share. If it is
	// nil, each process counts separately.
	Allowance func(p string, host provider.Host) provider.Allowance
	Client    func(*provider.Options) // see Options; may be nil
	Now       func() time.Time
	Logger    *slog.Logger
}

// OpenProviders opens the configured providers. It sends no request. If the simulator is
// configured without an address, it starts one on loopback.
func OpenProviders(ctx context.Context, o ProviderOptions) (_ *ProviderSet, err error) {
	cfg := o.Config
	set := &ProviderSet{Clients: map[string]provider.Clients{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, set.Close())
		}
	}()
	for _, name := range Providers() {
		if !slices.Contains(cfg.Providers, name) {
			set.Unconfigured = append(set.Unconfigured, view.Unconfigured{
				Provider: name, Reason: "not named in MARKET_PRICE_PROVIDERS",
			})
			continue
		}
		options := provider.Options{Provider: name, Now: o.Now, Logger: o.Logger}
		if key := cfg.Provider[name].APIKey.Reveal(); key != "" {
			options.Secrets = append(options.Secrets, key)
		}
		if o.Client != nil {
			o.Client(&options)
		}
		src, err := set.openers()[name](ctx, o, options)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", name, err)
		}
		set.List = append(set.List, src)
	}
	return set, nil
}

// client creates the client of a provider's host.
func (s *ProviderSet) client(so ProviderOptions, o provider.Options, host provider.Host) *provider.Client {
	c := newClient(so, o, host)
	if s.Clients[o.Provider] == nil {
		s.Clients[o.Provider] = provider.Clients{}
	}
	s.Clients[o.Provider][host.Key] = c
	return c
}

// newClient creates a client. It shares its budget with all clients of the same provider
// and host.
func newClient(so ProviderOptions, o provider.Options, host provider.Host) *provider.Client {
	o.Limit, o.Headers = host.Limit, host.Headers
	if host.Key != "" && o.Logger != nil {
		o.Logger = o.Logger.With("host", host.Key)
	}
	if so.Allowance != nil {
		o.Allowance = so.Allowance(o.Provider, host)
	}
	return provider.NewClient(o)
}

func (s *ProviderSet) openSim(ctx context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	cfg := so.Config
	base := cfg.Provider[sim.Name].BaseURL
	if base == nil {
		address, err := s.startSimulator(ctx)
		if err != nil {
			return nil, err
		}
		base = &url.URL{Scheme: "http", Host: address}
	}
	o.AllowHosts = []string{provider.HostPort(base)}
	host := provider.Host{Limit: provider.Limit(cfg.Provider[sim.Name].Limit), Quota: provider.Quota(cfg.Provider[sim.Name].Quota)}
	return sim.New(sim.Config{
		BaseURL: base.String(), Shape: provider.Shape(cfg.SimShape), BatchSize: cfg.SimBatchSize,
		Limit: host.Limit, Quota: host.Quota, Client: s.client(so, o, host),
	})
}

// startSimulator serves the built-in simulator on a free loopback port.
func (s *ProviderSet) startSimulator(ctx context.Context) (address string, err error) {
	h, err := sim.NewHandler(sim.Options{})
	if err != nil {
		return "", err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.simulator = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.simulator.Serve(l) }() // ends at Close
	return l.Addr().String(), nil
}

// openPricelist opens the price lists. Each host has a separate client. Redirects to any of
// these hosts are allowed, because the operator configured them.
func (s *ProviderSet) openPricelist(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	lists, err := loadLists(so.Config, so.Secret)
	if err != nil {
		return nil, err
	}
	for _, name := range lists.SecretNames() {
		if value, err := so.Secret(name); err == nil {
			o.Secrets = append(o.Secrets, value)
		}
	}
	for _, h := range lists.Hosts() {
		o.AllowHosts = append(o.AllowHosts, h.Key)
	}
	for _, h := range lists.Hosts() {
		s.client(so, o, h)
	}
	return pricelist.New(pricelist.Options{Config: lists, Secret: so.Secret, Clients: s.Clients[pricelist.Name]})
}

// checkProviders returns an error if the configured providers cannot be opened.
func checkProviders(cfg *config.Config) error {
	if err := checkKeys(cfg, cfg.Providers...); err != nil {
		return err
	}
	if !slices.Contains(cfg.Providers, pricelist.Name) {
		return nil
	}
	if _, err := loadLists(cfg, cfg.OutsideSecret); err != nil {
		return fmt.Errorf("provider %s: %w", pricelist.Name, err)
	}
	return nil
}

// loadLists reads the file of PRICELIST_CONFIG. All its errors are of kind fault.Invalid.
func loadLists(cfg *config.Config, secret func(string) (string, error)) (*pricelist.Config, error) {
	if cfg.PricelistConfig == "" {
		return nil, fault.New(fault.Invalid, "invalid_configuration", "Set PRICELIST_CONFIG to the file that describes your price lists.")
	}
	lists, err := pricelist.Load(cfg.PricelistConfig, secret)
	if err != nil && fault.Of(err) == nil {
		return nil, fault.New(fault.Invalid, "invalid_configuration", "PRICELIST_CONFIG: %v", err)
	}
	return lists, err
}

// Close closes the clients of all providers and stops the simulator.
func (s *ProviderSet) Close() error {
	if s == nil {
		return nil
	}
	for _, hosts := range s.Clients {
		for _, c := range hosts {
			c.Close()
		}
	}
	if s.simulator == nil {
		return nil
	}
	return s.simulator.Close()
}
