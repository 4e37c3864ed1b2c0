package api

import (
	"context"
	"net/http"

	"assay/internal/view"
)

// ProviderReader reads the state of providers.
type ProviderReader interface {
	ProviderDebug(ctx context.Context) (view.ProvidersDebug, error)
}

// providerHandlers serve the state of providers and control them.
type providerHandlers struct{ *Deps }

func (h providerHandlers) providerDebug(c *call) (any, error) {
	return h.Providers.ProviderDebug(c.Context())
}

// controlProvider returns a handler that calls a method of Refresher for a provider.
func (h providerHandlers) controlProvider(control func(ctx context.Context, provider string) error) handler {
	return func(c *call) (any, error) {
		return response{status: http.StatusNoContent}, control(c.Context(), c.values["provider"])
	}
}

func (h providerHandlers) acceptProvider(c *call) (any, error) {
	return response{status: http.StatusNoContent}, h.Refresher.AcceptProvider(c.Context(), c.values["provider"], c.values["market"])
}
