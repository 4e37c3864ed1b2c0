package app

import (
	"context"
	"strings"

	"assay/internal/config"
	"assay/internal/provider"
	"assay/internal/provider/csfloat"
	"assay/internal/provider/marketcsgo"
	"assay/internal/provider/skinport"
	"assay/internal/provider/steam"
	"assay/internal/provider/waxpeer"
)

// hosted is the configuration of a provider with one host.
type hosted struct {
	base   string // address without a trailing slash
	key    string // API key; empty: none
	host   provider.Host
	allow  string // host that the operator configured; empty: none
	client *provider.Client
}

// hosted returns the configuration and the client of a provider with one host. The
// operator's settings override base and limit.
func (s *ProviderSet) hosted(so ProviderOptions, o provider.Options, base string, limit provider.Limit) hosted {
	return s.hostedAt(so, o, base, provider.Host{Limit: limit})
}

// hostedAt is like hosted, but takes the complete description of the host.
func (s *ProviderSet) hostedAt(so ProviderOptions, o provider.Options, base string, host provider.Host) hosted {
	h := hostOf(so.Config, o.Provider, base, host)
	h.client = s.client(so, h.allowed(o), h.host)
	return h
}

// hostOf returns the configuration of a provider with one host, without a client. The
// operator's settings override base and the limits of host.
func hostOf(cfg *config.Config, p, base string, host provider.Host) hosted {
	c := cfg.Provider[p]
	h := hosted{base: base, key: c.APIKey.Reveal(), host: host}
	if !provider.Limit(c.Limit).None() {
		h.host.Limit = provider.Limit(c.Limit)
	}
	if c.Quota != (config.Quota{}) {
		h.host.Quota = provider.Quota(c.Quota)
	}
	if c.BaseURL != nil {
		h.base, h.allow = strings.TrimSuffix(c.BaseURL.String(), "/"), provider.HostPort(c.BaseURL)
	}
	return h
}

// allowed returns options with the configured host added to AllowHosts.
func (h *hosted) allowed(o provider.Options) provider.Options {
	if h.allow != "" {
		o.AllowHosts = append(o.AllowHosts, h.allow)
	}
	return o
}

func (s *ProviderSet) openSkinport(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	h := s.hosted(so, o, skinport.BaseURL, skinport.Limit())
	return skinport.New(skinport.Config{
		BaseURL: h.base, Currency: so.Config.Currency, SalesWindow: so.Config.NoSalesWindow, Host: h.host, Client: h.client,
	}), nil
}

func (s *ProviderSet) openMarketCSGO(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	h := s.hosted(so, o, marketcsgo.BaseURL, marketcsgo.Limit())
	return marketcsgo.New(marketcsgo.Config{BaseURL: h.base, Currency: so.Config.Currency, Host: h.host, Client: h.client}), nil
}

func (s *ProviderSet) openWaxpeer(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	h := s.hosted(so, o, waxpeer.BaseURL, waxpeer.Limit())
	return waxpeer.New(waxpeer.Config{BaseURL: h.base, Host: h.host, Client: h.client}), nil
}

func (s *ProviderSet) openCSFloat(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	h := s.hosted(so, o, csfloat.BaseURL, csfloat.Limit())
	return csfloat.New(csfloat.Config{BaseURL: h.base, Key: h.key, Host: h.host, Client: h.client}), nil
}

func (s *ProviderSet) openSteam(_ context.Context, so ProviderOptions, o provider.Options) (provider.Provider, error) {
	steam.Tune(&o)
	h := hostOf(so.Config, o.Provider, steam.BaseURL, steam.Host())
	h.host = without(h.host, so.Config.SteamShare)
	h.client = s.client(so, h.allowed(o), h.host)
	return steam.New(steam.Config{BaseURL: h.base, Endpoint: steam.Endpoint(so.Config.SteamEndpoint), Host: h.host, Client: h.client}), nil
}

// without reserves a share of a host's limits for other clients. It returns the host with
// the remaining limits.
func without(h provider.Host, percent int) provider.Host {
	h.Reserved = h.Limit.Requests * percent / 100
	h.Limit.Requests -= h.Reserved
	h.Quota.Day -= h.Quota.Day * int64(percent) / 100
	h.Quota.Month -= h.Quota.Month * int64(percent) / 100
	return h
}

// SteamClient returns a client for requests to steamcommunity.com that do not fetch prices,
// such as inventories, and the base address. Steam limits all requests of a client address
// together. The client therefore shares limit, quota and retry-after with the price provider
// steam, in all processes on the database. The function tune can change options such as
// MaxBody and Validate. SteamClient sets Provider, Limit and Allowance. The caller must
// close the client.
func SteamClient(so ProviderOptions, tune func(*provider.Options)) (client *provider.Client, base string) {
	o := provider.Options{Provider: steam.Name, Now: so.Now, Logger: so.Logger}
	if tune != nil {
		tune(&o)
	}
	steam.Tune(&o)
	if so.Client != nil {
		so.Client(&o)
	}
	h := hostOf(so.Config, steam.Name, steam.BaseURL, steam.Host())
	return newClient(so, h.allowed(o), h.host), h.base
}
