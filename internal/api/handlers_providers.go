package api

import (
	"context"
	"net/http"
)

// providerHandlers serve the state of providers and control them.
type providerHandlers struct{ *Deps }

func (h providerHandlers) providerDebug(c *call) (any, error) {
	return h.Readers.Providers.ProviderDebug(c.Context())
}

// controlProvider returns a handler that calls a method of the engine for a provider.
func (h providerHandlers) controlProvider(control func(ctx context.Context, provider string) error) handler {
	return func(c *call) (any, error) {
		return response{status: http.StatusNoContent}, control(c.Context(), c.values["provider"])
	}
}

func (h providerHandlers) acceptProvider(c *call) (any, error) {
	return response{status: http.StatusNoContent}, h.Engine.AcceptProvider(c.Context(), c.values["provider"], c.values["market"])
}
