package cli

import (
	"context"
	"io"

	"assay/internal/app"
	"assay/internal/config"
)

// configCmd shows the settings in force.
type configCmd struct{}

func (*configCmd) examples() []example {
	return []example{
		{"config", "list every setting, its value and where it comes from; secrets are masked"},
		{"config --config assay.conf --json", "the same as JSON, with the settings of a file"},
	}
}

// Run shows the settings, or all faults in them.
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

// configShown is the configuration as --json prints it.
type configShown struct {
	Settings []config.Setting `json:"settings"`
	Warnings []string         `json:"warnings"`
}
