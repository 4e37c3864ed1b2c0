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

// hosted is what a source of one host is made of.
type hosted struct {
	base   string // where it is, without a slash at its end
	key    string // "": none
	host   provider.Host
	client *provider.Client
}

// hosted prepares a source of one host: base and limit hold unless the operator
// named others.
func (s *SourceSet) hosted(so SourceOptions, o provider.Options, base string, limit provider.Limit) hosted {
	return s.hostedAt(so, o, base, provider.Host{Limit: limit})
}

// hostedAt is hosted for a host that documents more than a limit.
func (s *SourceSet) hostedAt(so SourceOptions, o provider.Options, base string, host provider.Host) hosted {
	c := so.Config.Sources[o.Source]
	h := hosted{base: base, key: c.APIKey.Reveal(), host: host}
	if !provider.Limit(c.Limit).None() {
		h.host.Limit = provider.Limit(c.Limit)
	}
	if c.Quota != (config.Quota{}) {
		h.host.Quota = provider.Quota(c.Quota)
	}
	if c.BaseURL != nil {
		h.base = strings.TrimSuffix(c.BaseURL.String(), "/")
		o.AllowHosts = append(o.AllowHosts, c.BaseURL.Host)
	}
	h.client = s.client(so, o, h.host)
	return h
}

func (s *SourceSet) openSkinport(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	h := s.hosted(so, o, skinport.BaseURL, skinport.Limit())
	return skinport.New(skinport.Config{
		BaseURL: h.base, Currency: so.Config.Currency, SalesWindow: so.Config.NoSalesWindow, Host: h.host, Client: h.client,
	}), nil
}

func (s *SourceSet) openMarketCSGO(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	h := s.hosted(so, o, marketcsgo.BaseURL, marketcsgo.Limit())
	return marketcsgo.New(marketcsgo.Config{BaseURL: h.base, Currency: so.Config.Currency, Host: h.host, Client: h.client}), nil
}

func (s *SourceSet) openWaxpeer(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	h := s.hosted(so, o, waxpeer.BaseURL, waxpeer.Limit())
	return waxpeer.New(waxpeer.Config{BaseURL: h.base, Host: h.host, Client: h.client}), nil
}

func (s *SourceSet) openCSFloat(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	h := s.hosted(so, o, csfloat.BaseURL, csfloat.Limit())
	return csfloat.New(csfloat.Config{BaseURL: h.base, Key: h.key, Host: h.host, Client: h.client}), nil
}

func (s *SourceSet) openSteam(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	steam.Tune(&o)
	h := s.hosted(so, o, steam.BaseURL, steam.Limit())
	return steam.New(steam.Config{BaseURL: h.base, Endpoint: steam.Endpoint(so.Config.SteamEndpoint), Host: h.host, Client: h.client}), nil
}
