package cli

import (
	"context"
	"io"

	"assay/internal/config"
	"assay/internal/view"
)

// eventsCmd lists the last events.
type eventsCmd struct{}

func (*eventsCmd) examples() []example {
	return []example{
		{"events", "list the last 50 events, newest first"},
		{"events --json", "print them as JSON, with all their data"},
	}
}

func (c *eventsCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	debug, err := call[view.JobDebug](ctx, api, request{path: marketPrices + "/job-debug", as: config.RoleMarket})
	if err != nil {
		return err
	}
	page := view.Page[view.Event]{Items: debug.Events}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{{"EVENT", "TIME", "KIND", "DATA"}}
		for _, e := range page.Items {
			rows = append(rows, []string{e.ID, moment(&e.At), printable(e.Kind), printable(string(e.Data))})
		}
		table(w, rows)
	})
}
