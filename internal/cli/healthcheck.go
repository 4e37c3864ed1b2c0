package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// healthcheckCmd checks whether the server is healthy; containers and supervisors
// call it.
type healthcheckCmd struct{}

func (*healthcheckCmd) examples() []example {
	return []example{
		{"healthcheck", "end with 0 when the server is well, with 3 when it is not or does not answer"},
		{"healthcheck --listen-addr 10.0.0.5:8080", "check a server on another host; needs no secret"},
	}
}

// Run sends one request.
func (c *healthcheckCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	health, err := api.health(ctx)
	if err != nil {
		return err
	}
	err = s.out.result(health, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s, version %s, up for %s\n", printable(health.Status), printable(health.Version), seconds(health.UptimeSeconds))
		names := make([]string, 0, len(health.Checks))
		for name := range health.Checks {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			_, _ = fmt.Fprintf(w, "  %s: %s\n", printable(name), printable(health.Checks[name]))
		}
	})
	if err == nil && health.Status != "ok" {
		err = errNotWell
	}
	return err
}
