package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// originDefault is the origin of settings that are not set.
const originDefault = "default"

// originGenerated is the prefix of the origin of a secret that CreateSecrets created.
const originGenerated = "generated "

// Load reads and checks a configuration. Its error is a Faults with all errors. Load reads
// secrets that CreateSecrets created in DATA_DIR, and it creates none.
func Load(o Options) (*Config, error) {
	l := newLoader(o)
	l.refuseUnknown(o.Providers)
	l.warnOfMisspellings(o.Providers)
	c := &Config{Provider: map[string]Provider{}, options: o}
	for _, provider := range o.Providers {
		c.Provider[provider] = Provider{}
	}
	for i := range l.table {
		l.apply(c, &l.table[i])
	}
	l.check(c)
	c.Warnings = l.warnings
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// LoadDatabase reads and checks only the settings of the database. A fault in other settings
// must not prevent a backup. Unknown names are faults here too, because a misspelled setting
// would leave its default in effect.
func LoadDatabase(o Options) (*Config, error) {
	l := newLoader(o)
	l.refuseUnknown(o.Providers)
	c := &Config{options: o}
	for i := range l.table {
		switch s := &l.table[i]; s.name {
		case "DATA_DIR", "DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_WAIT":
			l.apply(c, s)
		}
	}
	if err := l.faults.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// The sources of settings, in the order of precedence.
const (
	fromFlags = iota
	fromEnvironment
	fromConfigFile
)

// loader merges the sources of settings.
type loader struct {
	table    []setting
	layers   [3]layer // by source, in the order of precedence
	origins  map[string]string
	faults   Faults
	warnings []string
}

func newLoader(o Options) *loader {
	l := &loader{table: table(o.Providers), origins: map[string]string{}}
	flags := layer{}
	for name, value := range o.Flags {
		flags[name] = entry{text: value, origin: FlagName(name)}
	}
	l.layers = [3]layer{fromFlags: flags, fromEnvironment: environment(o.Environ), fromConfigFile: l.readFile(o.File)}
	return l
}

// environment returns all variables that are not empty.
func environment(variables []string) layer {
	values := layer{}
	for _, variable := range variables {
		if name, value, _ := strings.Cut(variable, "="); value != "" {
			values[name] = entry{text: value, origin: "environment"}
		}
	}
	return values
}

func (l *loader) readFile(name string) layer {
	if name == "" {
		return nil
	}
	text, err := readBounded(name)
	if err != nil {
		l.faults = append(l.faults, Fault{Origin: "--config", Problem: fmt.Sprintf("%s %s", name, err)})
		return nil
	}
	values, faults := parseFile(name, text)
	l.faults = append(l.faults, faults...)
	return values
}

// refuseUnknown reports unknown names in flags and the file, and unknown names with one of
// Assay's prefixes in the environment. It accepts all names of API keys, because price lists
// can use any of them.
func (l *loader) refuseUnknown(providers []string) {
	known, owned := l.known(), ownedPrefixes(providers)
	for i, values := range l.layers {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			foreign := !ours(name, owned) && (i == fromEnvironment || namedSecret(strings.TrimSuffix(name, fileSuffix)))
			if foreign || slices.Contains(known, name) {
				continue
			}
			problem := "is not a setting; remove it"
			if near := nearest(name, known); near != "" {
				problem = "is not a setting; did you mean " + near + "?"
			}
			if elsewhere, ok := misplaced()[name]; ok {
				problem = elsewhere
			}
			l.faults = append(l.faults, Fault{Origin: values[name].origin, Setting: name, Problem: problem})
		}
	}
}

// known returns the names of all settings, including NAME_FILE.
func (l *loader) known() []string {
	var known []string
	for i := range l.table {
		known = append(known, l.table[i].name)
		if l.table[i].takesFile() {
			known = append(known, l.table[i].name+fileSuffix)
		}
	}
	return known
}

// warnOfMisspellings warns of environment variables that may be misspelled settings, such
// as LISTEN_ADRR. They are not errors, because they can belong to another program.
func (l *loader) warnOfMisspellings(providers []string) {
	known, owned := l.known(), ownedPrefixes(providers)
	for _, name := range slices.Sorted(maps.Keys(l.layers[fromEnvironment])) {
		if ours(name, owned) || namedSecret(name) || slices.Contains(known, name) {
			continue
		}
		if near := nearest(name, known); near != "" && distance(name, near) <= len(near)/lettersPerTypo {
			l.warnings = append(l.warnings, fmt.Sprintf("the environment sets %s, which is not a setting of Assay; did you mean %s?", name, near))
		}
	}
}

// ownedPrefixes returns the prefixes of variables that only Assay uses. Prefixes that other
// programs also use, such as LOG_, are excluded.
func ownedPrefixes(providers []string) []string {
	prefixes := []string{"MARKET_PRICE_", "PLATFORM_API_", "ADMIN_API_", "WALLET_", "PAYMENT_", "INVENTORY_MAX_", "TRADE_HOLD"}
	for _, provider := range providers {
		prefixes = append(prefixes, providerPrefix(provider))
	}
	return prefixes
}

// ours reports whether a variable has one of Assay's prefixes. It excludes the variables
// that Kubernetes sets for the services of a namespace, such as WALLET_SERVICE_HOST and
// WALLET_PORT_80_TCP.
func ours(name string, owned []string) bool {
	for _, prefix := range owned {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		link := strings.Contains("_"+rest, "_SERVICE_HOST") || strings.Contains("_"+rest, "_SERVICE_PORT") ||
			strings.HasPrefix(rest, "PORT_") || rest == "PORT"
		return !link
	}
	return false
}

// apply looks up a setting and stores its value in c.
func (l *loader) apply(c *Config, s *setting) {
	e, ok := l.lookup(c, s)
	if !ok {
		e = entry{text: s.def, origin: originDefault}
	}
	l.origins[s.name] = e.origin
	shown := e.text
	if e.text != "" {
		if err := s.set(c, e.text); err != nil {
			l.fault(s.name, e.origin, err.Error())
			return
		}
		if s.show != nil {
			shown = s.show(c, e.text)
		}
	}
	c.settings = append(c.settings, Setting{Name: s.name, Value: shown, Origin: e.origin})
}

// lookup returns the value of a setting from the source with the highest precedence.
func (l *loader) lookup(c *Config, s *setting) (entry, bool) {
	for i, values := range l.layers {
		direct, isDirect := values[s.name]
		file, isFile := entry{}, false
		if s.takesFile() {
			file, isFile = values[s.name+fileSuffix]
		}
		switch {
		case isDirect && isFile:
			l.fault(s.name, direct.origin, "is also set as "+s.name+fileSuffix+"; keep one of the two")
			return direct, true
		case isDirect && i == fromFlags && s.secret:
			l.fault(s.name, direct.origin,
				"is a secret that all users of the machine can read on the command line; use "+FlagName(s.name+fileSuffix))
			return direct, true
		case isFile && strings.TrimSpace(file.text) == "":
			l.fault(s.name+fileSuffix, file.origin, "is empty; set a value or remove it")
			return entry{}, false
		case isDirect && strings.TrimSpace(direct.text) == "":
			l.fault(s.name, direct.origin, "is empty; set a value or remove it")
			return entry{}, false
		case isDirect:
			return direct, true
		case isFile:
			return l.fromFile(s, file)
		}
	}
	if s.generated && c.Database.Engine == SQLite {
		return l.fromGenerated(c, s)
	}
	return entry{}, false
}

// fromFile reads the value of a setting from the file that NAME_FILE names.
func (l *loader) fromFile(s *setting, path entry) (entry, bool) {
	value, problem := readSecretFile(path.text, s.generated)
	if problem != "" {
		l.fault(s.name+fileSuffix, path.origin, path.text+" "+problem)
		return entry{}, false
	}
	l.warnIfOpen(path.text)
	return entry{text: value, origin: s.name + fileSuffix + " (" + path.origin + ")"}, true
}

// fromGenerated reads a secret that CreateSecrets created.
func (l *loader) fromGenerated(c *Config, s *setting) (entry, bool) {
	path := generatedPath(c.DataDir, s.name)
	value, found, problem := readGenerated(path)
	if problem != "" {
		l.fault(s.name, path, problem)
	}
	if !found || problem != "" {
		return entry{}, false
	}
	l.warnIfOpen(path)
	return entry{text: value, origin: originGenerated + filepath.ToSlash(path)}, true
}

func (l *loader) fault(name, origin, problem string) {
	l.faults = append(l.faults, Fault{Origin: origin, Setting: name, Problem: problem})
}

// check reports invalid combinations of settings.
func (l *loader) check(c *Config) {
	l.refuseWeakSecrets(c)
	l.warnOfUnusedSettings(c)
	if slices.Contains(c.Providers, "pricelist") && c.PricelistConfig == "" && l.origins["PRICELIST_CONFIG"] == originDefault {
		l.fault("MARKET_PRICE_PROVIDERS", l.origins["MARKET_PRICE_PROVIDERS"],
			"contains pricelist, but PRICELIST_CONFIG is not set; set it to the file that describes the price lists")
	}
	if _, ok := c.Rates[c.Currency]; ok {
		l.fault("MARKET_PRICE_RATES", l.origins["MARKET_PRICE_RATES"],
			fmt.Sprintf("has a rate for %s, which is MARKET_PRICE_CURRENCY; remove it", c.Currency))
	}
}
