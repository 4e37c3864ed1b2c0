package refresh

import (
	"context"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/provider"
)

// probePatience is the time limit of a test request, including waits for rate limits.
const probePatience = 20 * time.Second

// probedName is the item that a test requests from a provider that is requested by name.
const probedName = "AK-47 | Redline (Field-Tested)"

// ProbeProvider sends a test request to a provider and counts the quotes in the response. It
// does not store them. The request counts in the provider's budget, and the circuit breaker and
// the waits of the provider apply. The parameter file selects a file of the provider. If it is
// "", ProbeProvider sends the cheapest request. The error is a *provider.Error, or a fault if
// the provider or the file is unknown.
func (e *Engine) ProbeProvider(ctx context.Context, name, file string) (provider.Probed, error) {
	if err := e.checkProvider(name); err != nil {
		return provider.Probed{}, err
	}
	src := e.providers[name]
	call, ok := provider.ProbeCall(src, catalog.CS2, probedName)
	if !ok {
		return provider.Probed{}, fault.New(fault.Invalid, "invalid_parameters", "Provider %s has no file to request.", name)
	}
	if file != "" {
		call, ok = provider.Call{}, false
		for _, f := range src.Describe().Files {
			if f.Key == file {
				call, ok = provider.Call{AppID: f.AppID, File: f.Key}, true
			}
		}
		if !ok {
			return provider.Probed{}, fault.New(fault.Invalid, "invalid_parameters", "Provider %s has no file %q.", name, file)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	return provider.Probe(ctx, src, call, e.now)
}
