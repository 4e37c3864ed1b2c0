package pricelist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider"
)

// maxConfig is the maximum size of a configuration in bytes.
const maxConfig = 1 << 20

// defaultInterval is the default time between two changes of a list.
const defaultInterval = 5 * time.Minute

// Config is a valid configuration. It is immutable.
type Config struct {
	interval time.Duration
	lists    []*list
	markets  []provider.Market
	hosts    []provider.Host // hosts of the lists
}

// Env holds the settings that Parse needs in addition to the document.
type Env struct {
	Dir string // base directory of relative locations
	// Secret returns the value of a secret. Its errors complete the sentence "the secret
	// NAME ...", such as "is not set". Parse calls it to check each secret in the
	// configuration. If it is nil, Parse does not check secrets.
	Secret func(name string) (string, error)
}

// Load parses the named configuration file. Relative locations in the file are relative to
// its directory. If the content is invalid, the error is a *fault.Error that lists all
// faults with JSON pointers.
func Load(name string, secret func(string) (string, error)) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open the configuration of price lists: %w", err)
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration of price lists: %w", err)
	}
	return Parse(doc, Env{Dir: filepath.Dir(name), Secret: secret})
}

// Parse parses a configuration. Its errors have type *fault.Error and list all faults with
// JSON pointers.
func Parse(doc []byte, env Env) (*Config, error) {
	f := &faults{}
	root := parseDocument(doc, f)
	if err := f.err(); err != nil {
		return nil, err
	}
	c := &Config{}
	o := newObject("", root, f)
	c.interval = o.duration("interval", defaultInterval)
	keys := map[string]bool{}
	for _, item := range o.objects("lists", maxLists) {
		l := readList(item, env)
		if keys[l.key] && l.key != "" {
			item.fault("key", "another list has the key %q: keys must be unique", l.key)
		}
		keys[l.key] = true
		c.lists = append(c.lists, l)
		c.mergeMarkets(item, l)
		c.mergeHosts(item, l)
	}
	if !o.has("lists") {
		o.fault("lists", "is missing")
	}
	o.done()
	if err := f.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// parseDocument checks that doc is one JSON value without duplicate names.
func parseDocument(doc []byte, f *faults) jsontext.Value {
	if len(doc) > maxConfig {
		f.add("", "must not exceed %d bytes", maxConfig)
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	v, err := dec.ReadValue()
	if err == nil {
		v = v.Clone()
		if _, err = dec.ReadToken(); err == io.EOF {
			return v
		}
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		f.add(string(syntax.JSONPointer), "is not valid JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	} else {
		f.add("", "is not one JSON object")
	}
	return nil
}

// mergeMarkets adds the markets of a list to the configuration. If several lists have the
// same market, they must describe it identically.
func (c *Config) mergeMarkets(o *object, l *list) {
	for i := range l.quotes {
		m := l.quotes[i].market
		at := slices.IndexFunc(c.markets, func(known provider.Market) bool { return known.Key == m.Key })
		if at < 0 {
			m.AppIDs = []int32{l.appID}
			c.markets = append(c.markets, m)
			continue
		}
		known := &c.markets[at]
		if known.Title != m.Title || known.Pool != m.Pool || known.MaxAge != m.MaxAge {
			o.faults.add(o.at+"/markets/"+strconv.Itoa(i), "market %q has a different title, pool or maxAge in another list", m.Key)
		}
		for _, currency := range m.Currencies {
			if !slices.Contains(known.Currencies, currency) {
				known.Currencies = append(known.Currencies, currency)
			}
		}
		known.SalesWindow = max(known.SalesWindow, m.SalesWindow)
		if !slices.Contains(known.AppIDs, l.appID) {
			known.AppIDs = append(known.AppIDs, l.appID)
		}
	}
}

// mergeHosts adds the host of a list to the configuration. All lists of a host share its
// budget, so only one of them needs to configure it.
func (c *Config) mergeHosts(o *object, l *list) {
	if l.location.host == "" {
		return
	}
	h := provider.Host{Key: l.location.host, Limit: l.location.limit, Quota: l.location.quota}
	at := slices.IndexFunc(c.hosts, func(known provider.Host) bool { return known.Key == h.Key })
	if at < 0 {
		c.hosts = append(c.hosts, h)
		return
	}
	known := &c.hosts[at]
	if !agree(&known.Limit, h.Limit) {
		o.fault("limit", "host %s has a different limit in another list", h.Key)
	}
	if !agree(&known.Quota, h.Quota) {
		o.fault("quota", "host %s has a different quota in another list", h.Key)
	}
}

// agree sets known to stated if known is zero. It then reports whether stated is zero or
// equal to known.
func agree[T comparable](known *T, stated T) bool {
	var nothing T
	if *known == nothing {
		*known = stated
	}
	return stated == nothing || stated == *known
}

// Hosts returns the hosts of all lists with a URL, with their ports and budgets. The
// address guard must allow them, because the operator configured them.
func (c *Config) Hosts() []provider.Host { return c.hosts }

// SecretNames returns the sorted names of all secrets in the configuration.
func (c *Config) SecretNames() []string {
	var names []string
	for _, l := range c.lists {
		used, _ := l.location.url.names() // validated by Parse
		for _, h := range l.headers {
			more, _ := h.value.names()
			used = append(used, more...)
		}
		names = append(names, used...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
