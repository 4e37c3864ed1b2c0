package cli

import (
	"context"
	"io"

	"assay/internal/app"
	"assay/internal/config"
)

// configCmd shows the effective settings.
type configCmd struct{}

func (*configCmd) examples() []example {
	return []example{
		{"config", "list every setting with its value and origin; secrets are masked"},
		{"config --config assay.conf --json", "print them as JSON, including the settings of a file"},
	}
}

// Run prints the settings, or all errors in them.
func (c *configCmd) Run(ctx context.Context, s *session) error {
	cfg, err := s.settings(nil)
	if err != nil {
		return err
	}
	if err := app.Check(ctx, cfg); err != nil {
		return settingsAtFault(err)
	}
	shown := configShown{Settings: cfg.Effective(), Warnings: cfg.Warnings}
	return s.out.result(shown, func(w io.Writer) {
		rows := [][]string{{"SETTING", "VALUE", "FROM"}}
		for _, set := range shown.Settings {
			value := printable(set.Value)
			if value == "" {
				value = "-"
			}
			rows = append(rows, []string{set.Name, value, set.Origin})
		}
		table(w, rows)
		for _, warning := range shown.Warnings {
			_, _ = io.WriteString(w, "warning: "+warning+"\n")
		}
	})
}

// configShown is the configuration that --json prints.
type configShown struct {
	Settings []config.Setting `json:"settings"`
	Warnings []string         `json:"warnings"`
}
