package config

// Definition describes a setting for documentation, help and completion.
type Definition struct {
	Name    string
	Default string // empty: none
	Help    string // one line of Markdown
	Secret  bool   // masked, and refused as a flag
	File    bool   // true if NAME_FILE can name a file with the value
}

// Definitions lists all settings in the order of the documentation. They include the
// settings of the given providers.
func Definitions(providers []string) []Definition {
	var all []Definition
	for _, s := range table(providers) {
		all = append(all, Definition{Name: s.name, Default: s.def, Help: s.help, Secret: s.secret, File: s.takesFile()})
	}
	return all
}
