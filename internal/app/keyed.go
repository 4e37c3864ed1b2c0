package app

import (
	"context"
	"slices"
	"strings"

	"assay/internal/config"
	"assay/internal/fault"
	"assay/internal/provider"
	"assay/internal/provider/cs2cap"
	"assay/internal/provider/pricempire"
)

// keyed lists the providers that require an API key.
var keyed = []string{cs2cap.Name, pricempire.Name}

// checkKeys returns an error if a provider lacks its API key, or if PRICEMPIRE_MARKETS
// contains an unsupported market.
func checkKeys(cfg *config.Config, providers ...string) error {
	for _, name := range providers {
		if slices.Contains(keyed, name) && cfg.Provider[name].APIKey.Reveal() == "" {
			return fault.New(fault.Invalid, "invalid_configuration", "The provider %s requires an API key: set %s_API_KEY.", name, strings.ToUpper(name))
		}
	}
	if slices.Contains(providers, pricempire.Name) {
		if err := pricempire.CheckMarkets(cfg.Provider[pricempire.Name].Markets); err != nil {
			return fault.New(fault.Invalid, "invalid_configuration", "PRICEMPIRE_MARKETS: %v", err)
		}
	}
	return nil
}

func (s *ProviderSet) openCs2cap(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	if err := checkKeys(so.Config, cs2cap.Name); err != nil {
		return nil, err
	}
	shape := provider.Shape(so.Config.Cs2capShape)
	var sales *provider.Client
	if so.Config.Cs2capShape == "stream" {
		shape = provider.Bulk
		at := hostOf(so.Config, cs2cap.Name, cs2cap.BaseURL, provider.Host{})
		about := at.allowed(o)
		cs2cap.Tune(&about, provider.Batch)
		sales = s.client(so, about, cs2cap.SalesHost()) // the configured limit applies to streams only
	}
	cs2cap.Tune(&o, shape)
	h := s.hostedAt(so, o, cs2cap.BaseURL, cs2cap.Host(shape))
	return cs2cap.New(cs2cap.Config{
		BaseURL: h.base, Key: h.key, Shape: shape, Markets: so.Config.Provider[cs2cap.Name].Markets,
		Currency: so.Config.Currency, Host: h.host, Client: h.client, Sales: sales,
	}), nil
}

func (s *ProviderSet) openPricempire(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	if err := checkKeys(so.Config, pricempire.Name); err != nil {
		return nil, err
	}
	o.Wait, o.MostWait = pricempire.Wait, pricempire.MostWait
	h := s.hosted(so, o, pricempire.BaseURL, pricempire.Limit())
	return pricempire.New(pricempire.Config{
		BaseURL: h.base, Key: h.key, Markets: so.Config.Provider[pricempire.Name].Markets,
		Currency: so.Config.Currency, Host: h.host, Client: h.client,
	}), nil
}
