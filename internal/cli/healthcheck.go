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

// healthcheckCmd checks whether the server is healthy. Containers and supervisors run it.
type healthcheckCmd struct{}

func (*healthcheckCmd) examples() []example {
	return []example{
		{"healthcheck", "exit with 0 if the server is healthy, with 3 if it is unhealthy or unreachable"},
		{"healthcheck --listen-addr 10.0.0.5:8080", "check a server on another host; needs no secret"},
	}
}

// Run sends one request.
func (c *healthcheckCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	// An unhealthy server responds too.
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
