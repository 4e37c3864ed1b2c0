package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/app"
	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/provider"
)

// providerTestCmd sends one request to a provider.
type providerTestCmd struct {
	Provider string `arg:"" complete:"provider" help:"Name of the provider."`
	Name     string `default:"AK-47 | Redline (Field-Tested)" help:"Item to request from a provider that is requested by name."`
	File     string `help:"File to request from a provider that has several. Default: the cheapest one."`
}

func (*providerTestCmd) examples() []example {
	return []example{
		{"provider test sim", "request one file or item from the simulator and show some quotes"},
		{"provider test pricelist --json", "read the first configured price list and print the result as JSON"},
		{"provider test pricelist --file shop", "read the list with the key shop"},
	}
}

// providerTested is the result of a test.
type providerTested struct {
	Provider string           `json:"provider"`
	Shape    provider.Shape   `json:"shape"`
	OK       bool             `json:"ok"`
	Error    string           `json:"error,omitzero"`
	Requests int64            `json:"requests"`
	Bytes    int64            `json:"bytes"`
	Seconds  float64          `json:"seconds"`
	Quotes   map[string]int64 `json:"quotes"`   // by market
	Rejected map[string]int64 `json:"rejected"` // by reason
	Samples  []providerSample `json:"samples"`
	Checks   []providerCheck  `json:"checks"`
	Counted  bool             `json:"counted"` // whether the requests count in the budget of the database
	File     string           `json:"file"`    // requested file; empty: the request was by name
	Others   []string         `json:"others"`  // other files of the provider

	err    error
	remote bool                 // the provider is a host, not a local file
	state  provider.ClientState // of the requested host
}

// providerSample is one quote in the response.
type providerSample struct {
	Market         string         `json:"market"`
	MarketHashName string         `json:"marketHashName"`
	Phase          string         `json:"phase"`
	Ask            money.Micro    `json:"lowestAsk"`
	Currency       money.Currency `json:"currency"`
}

// Run requests one file of a provider that serves files. From other providers it requests one
// item.
func (c *providerTestCmd) Run(ctx context.Context, s *session) (err error) {
	if err := catalog.CheckName(c.Name); err != nil {
		return &usageError{text: err.Error()}
	}
	budget := budgetOf{}
	defer func() { err = errors.Join(err, budget.close()) }()
	src, set, err := s.openProvider(ctx, c.Provider, func(cfg *config.Config, o *app.ProviderOptions) {
		budget = openBudget(ctx, cfg, c.Provider, s.Now)
		o.Allowance = budget.allowance()
		o.Client = func(o *provider.Options) { o.Attempts, o.Total = 1, testPatience }
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	call, err := c.call(src)
	if err != nil {
		return err
	}
	found := tested(ctx, src, set.Clients[src.Describe().Name], call, s.Now)
	found.check(budget)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.out.result(found, func(w io.Writer) { writeTested(w, found) }); err != nil {
		return err
	}
	if !found.OK {
		return errProviderFailed
	}
	return nil
}

// testPatience is the time limit of a test, including waits for rate limits.
const testPatience = time.Minute

// call returns the request for the file that --file names. Without --file, it returns the cheapest
// request.
func (c *providerTestCmd) call(src provider.Provider) (provider.Call, error) {
	d := src.Describe()
	if c.File == "" {
		call, ok := provider.ProbeCall(src, catalog.CS2, c.Name)
		if !ok {
			return call, fmt.Errorf("%s has no file to fetch", d.Name)
		}
		return call, nil
	}
	keys := fileKeys(d)
	if i := slices.Index(keys, c.File); i >= 0 {
		return provider.Call{AppID: d.Files[i].AppID, File: c.File}, nil
	}
	text := d.Name + " has no file with that key: use one of " + strings.Join(keys, ", ")
	if len(keys) == 0 {
		text = d.Name + " is requested by name: use --name"
	}
	return provider.Call{}, &usageError{text: text}
}

func fileKeys(d provider.Description) []string {
	var keys []string
	for _, f := range d.Files {
		keys = append(keys, f.Key)
	}
	return keys
}

// tested sends one request to src and returns the result.
func tested(ctx context.Context, src provider.Provider, clients provider.Clients, call provider.Call, now func() time.Time) providerTested {
	d := src.Describe()
	found := providerTested{Provider: d.Name, Shape: d.Shape, File: call.File, Others: []string{}}
	for _, key := range fileKeys(d) {
		if key != call.File {
			found.Others = append(found.Others, key)
		}
	}
	p, err := provider.Probe(ctx, src, call, now)
	found.Seconds, found.Requests, found.Bytes, found.Quotes, found.Rejected = p.Took.Seconds(), p.Requests, p.Bytes, p.Quotes, p.Rejected
	found.Samples = []providerSample{}
	for _, s := range p.Samples {
		found.Samples = append(found.Samples, providerSample{s.Market, s.Name, s.Phase, s.Ask, s.Currency})
	}
	found.OK, found.err = err == nil, err
	if err != nil {
		found.Error = failureText(err)
	}
	found.state, found.remote = stateOf(clients, d.HostOf(call.File))
	return found
}

// stateOf returns the client state of the requested host, or of another host that got a later
// request. It returns false if the host has no client.
func stateOf(clients provider.Clients, host string) (state provider.ClientState, ok bool) {
	c := clients[host]
	if c == nil {
		return state, false
	}
	state = c.Snapshot()
	for _, other := range clients.Snapshot() {
		if len(other.Requests) > 0 && (len(state.Requests) == 0 || other.Requests[0].Time.After(state.Requests[0].Time)) {
			state = other
		}
	}
	return state, true
}

func writeTested(w io.Writer, t providerTested) {
	if len(t.Others) > 0 {
		defer func() {
			what := t.File
			if what == "" {
				what = "one name"
			}
			_, _ = fmt.Fprintf(w, "  tested %s; not tested, see --file: %s\n", printable(what), printable(strings.Join(t.Others, ", ")))
		}()
	}
	if !t.OK {
		_, _ = fmt.Fprintf(w, "%s does not work: %s\n", t.Provider, t.Error)
		writeChecks(w, t.Checks)
		return
	}
	_, _ = fmt.Fprintf(w, "%s works: %s, %s bytes, %.2f s\n", t.Provider, requests(t.Requests), count(t.Bytes), t.Seconds)
	writeChecks(w, t.Checks)
	var rows [][]string
	for _, market := range slices.Sorted(maps.Keys(t.Quotes)) {
		rows = append(rows, []string{"  " + cell(market), plural(t.Quotes[market], "quote", "quotes")})
	}
	for _, reason := range slices.Sorted(maps.Keys(t.Rejected)) {
		rows = append(rows, []string{"  rejected", count(t.Rejected[reason]) + ": " + printable(reason)})
	}
	table(w, rows)
	if len(t.Quotes) == 0 {
		_, _ = fmt.Fprintln(w, "  no price for that item")
	}
	for _, q := range t.Samples {
		_, _ = fmt.Fprintf(w, "  for example %s: %s %s on %s\n", nameAndPhase(q.MarketHashName, q.Phase), q.Ask, q.Currency, printable(q.Market))
	}
}
