package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/sim"
)

// simulatorCommand is the argument that starts this program as the simulator.
const simulatorCommand = "simulator"

// ticksToChange is the number of price ticks between two runs. More than half of the prices change
// in each tick, so nearly all quotes change between two runs.
const ticksToChange = 8

// serveSimulator runs the simulator process. It writes its address to out and serves until in
// ends, so that it ends with its parent.
func serveSimulator(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var names, markets int
	if _, err := fmt.Sscan(strings.Join(args, " "), &names, &markets); err != nil {
		return fmt.Errorf("read the numbers of names and markets: %w", err)
	}
	h, err := sim.NewHandler(sim.Options{Seed: 1, Names: names, Markets: markets, Frozen: true, TicksPerWeek: 1})
	if err != nil {
		return err
	}
	ticking, err := sim.NewHandler(sim.Options{Seed: 1, Names: names, Markets: markets, Frozen: true})
	if err != nil {
		return err
	}
	files, err := simulatorMarkets("http://127.0.0.1", markets)
	if err != nil {
		return err
	}
	c := &controlled{sim: h, weekly: h, ticking: ticking, markets: files, files: map[string][]byte{}}
	c.remember(ctx)
	s, err := sim.Start(ctx, "127.0.0.1:0", c)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, s.URL()); err != nil {
		return errors.Join(err, s.Close())
	}
	_, _ = io.Copy(io.Discard, in) // until the parent ends
	return s.Close()
}

// simulatorMarkets returns the markets of a simulator.
func simulatorMarkets(base string, markets int) ([]provider.Market, error) {
	s, err := sim.New(sim.Config{BaseURL: base, Markets: markets})
	if err != nil {
		return nil, err
	}
	return s.Describe().Markets, nil
}

// marketFile returns the path of a market's price file.
func marketFile(market string) string { return "/v1/markets/" + market + "/prices.json" }

// controlled is a simulator with a control API. It serves whole markets from memory, so that
// generating prices uses no processor time during a measurement.
type controlled struct {
	sim     *sim.Handler // one of the next two
	weekly  *sim.Handler // changes all prices
	ticking *sim.Handler // changes few prices
	markets []provider.Market

	mu       sync.Mutex
	files    map[string][]byte // by path
	requests int
	latency  time.Duration // delay of every response
}

// remember regenerates the response of every market.
func (c *controlled) remember(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.markets {
		response := httptest.NewRecorder()
		c.sim.ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, marketFile(m.Key), http.NoBody))
		c.files[marketFile(m.Key)] = response.Body.Bytes()
	}
}

// ServeHTTP handles one request.
func (c *controlled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/control/advance":
		c.weekly.Advance(ticksToChange)
		c.sim = c.weekly
		c.remember(r.Context())
	case "/control/tick":
		c.ticking.Advance(1)
		c.sim = c.ticking
		c.remember(r.Context())
	case "/control/latency":
		d, err := time.ParseDuration(r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.latency = d
	case "/control/requests":
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = fmt.Fprint(w, c.requests) // the client may have disconnected
	default:
		c.response(w, r)
	}
}

// response counts and handles a request.
func (c *controlled) response(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests++
	body, ok := c.files[r.URL.Path]
	latency := c.latency
	c.mu.Unlock()
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		return
	}
	if !ok {
		c.sim.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may have disconnected
}

// simulator is a running simulator process.
type simulator struct {
	url     string
	names   []string
	markets []provider.Market

	process *exec.Cmd
	stdin   io.Closer
}

// startSimulator starts this program as a simulator.
func startSimulator(ctx context.Context, names, markets int) (*simulator, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h, err := sim.NewHandler(sim.Options{Names: names, Markets: markets})
	if err != nil {
		return nil, err
	}
	s := &simulator{names: h.Names()}
	s.process = exec.CommandContext(ctx, self, simulatorCommand, strconv.Itoa(names), strconv.Itoa(markets)) //nolint:gosec // this program
	s.process.Stderr = os.Stderr
	if s.stdin, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start the simulator: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the simulator did not start: %w", err), s.close())
	}
	s.url = strings.TrimSpace(line)
	s.markets, err = simulatorMarkets(s.url, markets)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close stops the simulator.
func (s *simulator) close() error {
	err := s.stdin.Close()
	_ = s.process.Wait() // the process was signalled to end
	return err
}

// advance changes all prices.
func (s *simulator) advance(ctx context.Context) error {
	_, err := s.control(ctx, "/control/advance")
	return err
}

// tick changes as many prices as in ten minutes. The first call after advance changes all.
func (s *simulator) tick(ctx context.Context) error {
	_, err := s.control(ctx, "/control/tick")
	return err
}

// delay sets the delay of every response.
func (s *simulator) delay(ctx context.Context, latency time.Duration) error {
	_, err := s.control(ctx, "/control/latency?"+latency.String())
	return err
}

// requests returns the number of received requests.
func (s *simulator) requests(ctx context.Context) (int, error) {
	body, err := s.control(ctx, "/control/requests")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(body))
}

func (s *simulator) control(ctx context.Context, path string) ([]byte, error) {
	status, body, err := send(ctx, http.DefaultClient, http.MethodGet, s.url+path, "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("simulator: %s: status %d", path, status)
	}
	return body, err
}

// env returns the settings for a server that uses this simulator. It selects the provider sim
// if that has the same markets, otherwise price lists that are configured in dir.
func (s *simulator) env(ctx context.Context, dir string) ([]string, error) {
	if len(s.markets) == sim.DefaultMarkets {
		return []string{"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + s.url}, nil
	}
	name, err := s.writeLists(ctx, dir)
	return []string{"MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG=" + name}, err
}

// writeLists writes a price list configuration with every market.
func (s *simulator) writeLists(ctx context.Context, dir string) (name string, err error) {
	type object map[string]any
	var lists []object
	for _, m := range s.markets {
		unit, err := s.unit(ctx, m.Key)
		if err != nil {
			return "", err
		}
		market := object{"key": m.Key, "title": m.Title, "ask": "ask", "bid": "bid", "listings": "listings"}
		if m.Pool != "" {
			market["pool"] = m.Pool
		}
		if m.SalesWindow > 0 {
			market["sale"], market["sales"], market["salesWindow"] = "sale", "sales", m.SalesWindow.String()
		}
		lists = append(lists, object{
			"key": m.Key, "location": s.url + marketFile(m.Key), "format": "jsonArray", "appId": 730,
			"currency": "USD", "unit": unit, "root": "items", "name": "name", "phase": object{"field": "phase"},
			"time": object{"field": "time", "format": "unix"}, "markets": []object{market},
		})
	}
	doc, err := json.Marshal(object{"lists": lists})
	if err != nil {
		return "", err
	}
	name = dir + "/lists.json"
	return name, os.WriteFile(name, doc, 0o600)
}

// unit returns the number of units per dollar that a market uses. The response of the market starts
// with this number.
func (s *simulator) unit(ctx context.Context, market string) (unit int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+marketFile(market), http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	head := make([]byte, 256)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(head), `"unit":`)
	_, err = fmt.Sscan(after, &unit)
	return unit, err
}
