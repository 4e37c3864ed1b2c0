package config

// Definition describes a setting for documentation, help and completion.
type Definition struct {
	Name    string
	Default string // empty: none
	Help    string // one line of Markdown
	Secret  bool   // masked, and refused as a flag
	File    bool   // also taken as NAME_FILE
}

// Definitions lists all settings that exist with these providers, in the order of
// the documentation.
func Definitions(providers []string) []Definition {
	var all []Definition
	for _, s := range table(providers) {
		all = append(all, Definition{Name: s.name, Default: s.def, Help: s.help, Secret: s.secret, File: s.takesFile()})
	}
	return all
}
