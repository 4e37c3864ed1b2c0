package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"assay/internal/view"
)

// healthcheckCmd checks whether the server is healthy. Containers and supervisors use it.
type healthcheckCmd struct{}

func (*healthcheckCmd) examples() []example {
	return []example{
		{"healthcheck", "exit with 0 if the server is healthy, else with 3"},
		{"healthcheck --listen-addr 10.0.0.5:8080", "check a server on another host; needs no secret"},
	}
}

func (c *healthcheckCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	// An unhealthy server also sends a response.
	health, err := call[view.Health](ctx, api, request{path: "/api/health", accept: http.StatusServiceUnavailable})
	if err != nil {
		return err
	}
	err = s.out.result(health, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s, version %s, up for %s\n", printable(health.Status), printable(health.Version), seconds(health.UptimeSeconds))
		for _, name := range slices.Sorted(maps.Keys(health.Checks)) {
			_, _ = fmt.Fprintf(w, "  %s: %s\n", printable(name), printable(health.Checks[name]))
		}
	})
	if err == nil && health.Status != "ok" {
		err = errUnhealthy
	}
	return err
}
