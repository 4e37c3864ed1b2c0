package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"assay/internal/config"
	"assay/internal/fault"
	"assay/internal/provider"
	"assay/internal/provider/pricelist"
	"assay/internal/provider/sim"
	"assay/internal/view"
)

// Sources lists the price sources that this program knows, by name.
func Sources() []string { return []string{pricelist.Name, sim.Name} }

// SourceSet holds the configured sources with the clients that carry their
// requests.
type SourceSet struct {
	List         []provider.Source
	Clients      map[string]*provider.Client
	Unconfigured []view.Unconfigured

	simulator *http.Server
}

// SourceOptions are what sources are made of.
type SourceOptions struct {
	Config *config.Config
	Secret func(name string) (string, bool)     // values of secrets that price lists name
	Held   func(source string, until time.Time) // see provider.Options; may be nil
	Client func(*provider.Options)              // see Options; may be nil
	Now    func() time.Time
	Logger *slog.Logger
}

// OpenSources makes the configured sources. It asks none of them. Where the
// simulator is named without an address, one is started on loopback.
func OpenSources(ctx context.Context, o SourceOptions) (_ *SourceSet, err error) {
	cfg := o.Config
	set := &SourceSet{Clients: map[string]*provider.Client{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, set.Close())
		}
	}()
	for _, name := range Sources() {
		if !slices.Contains(cfg.Providers, name) {
			set.Unconfigured = append(set.Unconfigured, view.Unconfigured{
				Source: name, Reason: "not named in MARKET_PRICE_PROVIDERS",
			})
			continue
		}
		options := provider.Options{Source: name, Now: o.Now, Logger: o.Logger}
		if o.Held != nil {
			options.Held = func(until time.Time) { o.Held(name, until) }
		}
		if key := cfg.Sources[name].APIKey.Reveal(); key != "" {
			options.Secrets = append(options.Secrets, key)
		}
		if o.Client != nil {
			o.Client(&options)
		}
		var src provider.Source
		switch name {
		case sim.Name:
			src, err = set.openSim(ctx, cfg, options)
		case pricelist.Name:
			src, err = set.openPricelist(cfg, options, o.Secret)
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		set.List = append(set.List, src)
	}
	return set, nil
}

func (s *SourceSet) client(o provider.Options) *provider.Client {
	c := provider.NewClient(o)
	s.Clients[o.Source] = c
	return c
}

func (s *SourceSet) openSim(ctx context.Context, cfg *config.Config, o provider.Options) (provider.Source, error) {
	base := cfg.Sources[sim.Name].BaseURL
	if base == nil {
		address, err := s.startSimulator(ctx)
		if err != nil {
			return nil, err
		}
		base = &url.URL{Scheme: "http", Host: address}
	}
	o.AllowHosts = []string{base.Host}
	return sim.New(sim.Config{BaseURL: base.String(), Shape: provider.Shape(cfg.SimShape), Client: s.client(o)})
}

// startSimulator serves the built-in simulator on a free loopback port.
func (s *SourceSet) startSimulator(ctx context.Context) (address string, err error) {
	h, err := sim.NewHandler(sim.Options{})
	if err != nil {
		return "", err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.simulator = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.simulator.Serve(l) }() // until Close
	return l.Addr().String(), nil
}

func (s *SourceSet) openPricelist(cfg *config.Config, o provider.Options, secret func(string) (string, bool)) (provider.Source, error) {
	lists, err := loadLists(cfg, secret)
	if err != nil {
		return nil, err
	}
	o.AllowHosts = lists.Hosts()
	for _, name := range lists.SecretNames() {
		if value, ok := secret(name); ok {
			o.Secrets = append(o.Secrets, value)
		}
	}
	return pricelist.New(pricelist.Options{Config: lists, Client: s.client(o), Secret: secret})
}

// checkSources finds what would keep the configured sources from being opened.
func checkSources(cfg *config.Config) error {
	if !slices.Contains(cfg.Providers, pricelist.Name) {
		return nil
	}
	if _, err := loadLists(cfg, cfg.OutsideSecret); err != nil {
		return fmt.Errorf("source %s: %w", pricelist.Name, err)
	}
	return nil
}

// loadLists reads what PRICELIST_CONFIG names. That it cannot be read is a fault
// of the configuration, as everything wrong in it is.
func loadLists(cfg *config.Config, secret func(string) (string, bool)) (*pricelist.Config, error) {
	if cfg.PricelistConfig == "" {
		return nil, fault.New(fault.Invalid, "invalid_configuration", "name the file that describes your price lists in PRICELIST_CONFIG")
	}
	lists, err := pricelist.Load(cfg.PricelistConfig, secret)
	if err != nil && fault.Of(err) == nil {
		return nil, fault.New(fault.Invalid, "invalid_configuration", "PRICELIST_CONFIG: %v", err)
	}
	return lists, err
}

// Close ends the sources' connections and the simulator.
func (s *SourceSet) Close() error {
	if s == nil {
		return nil
	}
	for _, c := range s.Clients {
		c.Close()
	}
	if s.simulator == nil {
		return nil
	}
	return s.simulator.Close()
}
