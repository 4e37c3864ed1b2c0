package app

import (
	"context"
	"slices"
	"strings"

	"assay/internal/config"
	"assay/internal/fault"
	"assay/internal/provider"
	"assay/internal/provider/cs2cap"
)

// keyed are the sources that answer nobody without a key.
var keyed = []string{cs2cap.Name}

// checkKeys finds which of the sources lacks the key that it needs.
func checkKeys(cfg *config.Config, sources ...string) error {
	for _, name := range sources {
		if slices.Contains(keyed, name) && cfg.Sources[name].APIKey.Reveal() == "" {
			return fault.New(fault.Invalid, "invalid_configuration", "set %s_API_KEY: %s answers nobody without a key", strings.ToUpper(name), name)
		}
	}
	return nil
}

func (s *SourceSet) openCs2cap(_ context.Context, so SourceOptions, o provider.Options) (provider.Source, error) {
	if err := checkKeys(so.Config, cs2cap.Name); err != nil {
		return nil, err
	}
	o.Judge = cs2cap.Judge
	shape := provider.Shape(so.Config.Cs2capShape)
	h := s.hostedAt(so, o, cs2cap.BaseURL, cs2cap.Host(shape))
	return cs2cap.New(cs2cap.Config{
		BaseURL: h.base, Key: h.key, Shape: shape, Markets: so.Config.Sources[cs2cap.Name].Markets,
		Currency: so.Config.Currency, Host: h.host, Client: h.client,
	}), nil
}
