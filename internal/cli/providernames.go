package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/provider"
	"assay/internal/provider/sim"
)

// providerNamesCmd lists the names in a provider's catalog.
type providerNamesCmd struct {
	Provider string `arg:"" complete:"provider" help:"Name of the provider."`
}

func (*providerNamesCmd) examples() []example {
	return []example{
		{"provider names sim --json", "print the simulator's catalog, one JSON string per line"},
		{"provider names pricelist", "read all configured price lists and print their names"},
	}
}

// Run lists the names. The simulator needs no request.
func (c *providerNamesCmd) Run(ctx context.Context, s *session) (err error) {
	w := bufio.NewWriter(s.Stdout)
	if c.Provider == sim.Name {
		if err := sim.WriteNames(w, s.out.json); err != nil {
			return err
		}
		return w.Flush()
	}
	src, closer, err := s.openProvider(ctx, c.Provider, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	names, err := namesOf(ctx, src)
	if err != nil {
		return err
	}
	var line []byte
	for _, name := range names {
		if line = append(line[:0], printable(name)...); s.out.json {
			if line, err = jsontext.AppendQuote(line[:0], name); err != nil {
				return err
			}
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}

// namesOf fetches all files of a provider and returns the names in them, sorted.
func namesOf(ctx context.Context, src provider.Provider) ([]string, error) {
	d := src.Describe()
	if d.Shape != provider.Bulk {
		return nil, &usageError{text: d.Name + " is requested by name and cannot list its names", hint: "run `assay provider test --help`"}
	}
	all := map[string]bool{}
	for _, file := range d.Files {
		names := nameSet{}
		if _, err := src.Fetch(ctx, provider.Call{AppID: file.AppID, File: file.Key, Meter: &provider.Meter{}}, names); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%w: file %s: %s", errProviderUnread, printable(file.Key), failureText(err))
		}
		maps.Copy(all, names)
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// nameSet collects names. It implements provider.Sink.
type nameSet map[string]bool

func (n nameSet) Restart()                      { clear(n) }
func (n nameSet) Quote(q *provider.Quote) error { n[strings.Clone(q.Name)] = true; return nil }
func (n nameSet) Reject(_, _, _ string)         {}
