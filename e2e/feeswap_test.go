package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pgtest"
	"assay/internal/randtest"
	"assay/internal/wallet/fee"
)

// takenQuote is a quote with its request and response.
type takenQuote struct {
	payment fee.Payment
	least   int64 // version that was active when the request was sent
	Version int64
	Rule    string
	Fee     int64
	Net     int64
}

// quoters request quotes from servers and record the responses.
type quoters struct {
	servers []*server
	client  *http.Client
	active  atomic.Int64  // version in the last response to a refresh
	taken   chan struct{} // one element for each quote since the last change
}

// quote requests one quote.
func (q *quoters) quote(s *server, p fee.Payment) (takenQuote, error) {
	a := takenQuote{payment: p, least: q.active.Load()}
	body := fmt.Sprintf(`{"kind":%q,"amount":%d,"currency":%q,"paymentMethod":%q,"country":%q,"time":%q}`,
		p.Kind, p.Amount, p.Currency, p.Method, p.Country, p.At.Format(time.RFC3339Nano))
	req, err := http.NewRequest(http.MethodPost, "http://"+s.addr+feeRulesPath+"/quote", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := q.client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return a, fmt.Errorf("got status %d %s, want 200: %w", resp.StatusCode, text, err)
	}
	return a, json.Unmarshal(text, &a)
}

// work sends requests to the servers in rotation until ctx ends.
func (q *quoters) work(ctx context.Context, r *rand.Rand) (out []takenQuote, err error) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return out, nil
		case q.taken <- struct{}{}:
		default: // there are enough quotes for the next change
		}
		a, err := q.quote(q.servers[n%len(q.servers)], anyPayment(r))
		if err != nil {
			return out, err
		}
		out = append(out, a)
	}
}

// TestFees_QuotesMatchTheirVersion changes the rules on alternating instances while all
// instances get requests for quotes.
func TestFees_QuotesMatchTheirVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		seed := randtest.Seed(t)
		r := rand.New(rand.NewPCG(seed, 0))
		path, write := feeFile(t, anyRules(r, 1))
		swaps, between := randtest.Count(20, 500), randtest.Count(20, 200)
		q := &quoters{
			client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}},
			taken:  make(chan struct{}, between),
		}
		defer q.client.CloseIdleConnections()
		q.servers = on.instances(t, 2, "PAYMENT_FEE_RULES="+path)
		q.active.Store(1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		kept := make([][]takenQuote, 4)
		var wg sync.WaitGroup
		for i := range kept {
			wg.Go(func() {
				var err error
				if kept[i], err = q.work(ctx, rand.New(rand.NewPCG(seed, uint64(i+1)))); err != nil {
					t.Error(err)
					stop()
				}
			})
		}
		begun := time.Now()
		for n := range swaps {
			for range between {
				select {
				case <-q.taken:
				case <-ctx.Done():
				}
			}
			write(anyRules(r, n+2))
			status, response := q.servers[n%len(q.servers)].postFees("/refresh?allowLargeChange=1", "")
			if status != http.StatusOK || fmt.Sprint(response["version"]) != fmt.Sprint(n+2) {
				t.Errorf("change %d: got %d %v, want 200 and the next version", n, status, response)
				break
			}
			q.active.Store(int64(n + 2))
		}
		took := time.Since(begun)
		stop()
		wg.Wait()
		quotes := recompute(t, q.servers[0], kept)
		t.Logf("%d swaps, %d quotes by %d instances, %.0f a second", swaps, quotes, len(q.servers), float64(quotes)/took.Seconds())
	})
}

// recompute checks each quote with the rules of its version, and returns the number of quotes.
func recompute(t *testing.T, s *server, kept [][]takenQuote) (n int) {
	t.Helper()
	sets := map[int64]*fee.Set{}
	rules := map[string]bool{}
	for _, list := range kept {
		for _, got := range list {
			n++
			rules[got.Rule] = true
			set := sets[got.Version]
			if set == nil {
				var version struct{ Rules json.RawMessage }
				s.get(fmt.Sprint(feeRulesPath, "?version=", got.Version), &version)
				var err error
				if set, err = fee.Decode(bytes.NewReader(version.Rules)); err != nil {
					t.Fatal(err)
				}
				set.Version = got.Version
				sets[got.Version] = set
			}
			want, err := fee.Compute(set, got.payment)
			if again := (fee.Quote{Version: got.Version, Rule: got.Rule, Fee: got.Fee, Net: got.Net}); err != nil || again != want || got.Version < got.least {
				t.Fatalf("got quote %+v, want %+v by version %d (error %v) and at least version %d", got, want, got.Version, err, got.least)
			}
		}
	}
	if len(rules) < 4 {
		t.Errorf("got quotes by the rules %v, want at least 4", rules)
	}
	return n
}

// instances starts n servers on one database. On SQLite there is only one.
func (on engine) instances(t *testing.T, n int, env ...string) (servers []*server) {
	t.Helper()
	if on == onSQLite {
		servers = []*server{newServer(t, env...)}
	} else {
		url := pgtest.Shared(t).NewDatabase(t)
		for range n {
			servers = append(servers, newServerOn(t, url, env...))
		}
	}
	for _, s := range servers {
		s.spawn()
	}
	for _, s := range servers {
		s.awaitHealth()
	}
	return servers
}

// anyRules returns a document that is different for each n.
func anyRules(r *rand.Rand, n int) string {
	rate := func() string { return fmt.Sprintf(`"basisPoints":%d`, r.IntN(3_000)) }
	basis := func() string {
		return fmt.Sprintf(`"basis":%q,"rounding":%q`, []string{"gross", "net"}[r.IntN(2)], []string{"halfEven", "halfUp", "up", "down"}[r.IntN(4)])
	}
	border := 1 + r.IntN(50_000)
	return fmt.Sprintf(`{"rules":[
		{"id":"n%d","priority":0,"conditions":{"paymentMethod":"never"},%s},
		{"id":"card","priority":%d,"conditions":{"paymentMethod":"card","country":["DE","FR"]},%s,%s},
		{"id":"tiers","priority":%d,"conditions":{"kind":"sale","currency":"USD"},"minimum":%d,"maximum":%d,%s,"tiers":[
			{"from":0,"below":%d,%s,"fixed":%d},{"from":%d,%s}]},
		{"id":"early","priority":5,"conditions":{"currency":"EUR"},%s,%s,"effectiveUntil":"2026-11-21T12:00:00Z"}
		],"fallback":{%s,%s}}`,
		n, rate(), 1+r.IntN(2), rate(), basis(), 3+r.IntN(2), r.IntN(100), 100+r.IntN(5_000), basis(), border, rate(), r.IntN(50), border, rate(), rate(), basis(), rate(), basis())
}

func anyPayment(r *rand.Rand) fee.Payment {
	return fee.Payment{
		Kind: []fee.Kind{fee.Sale, fee.Sale, fee.Deposit}[r.IntN(3)], Amount: r.Int64N(100_000), Currency: []money.Currency{"USD", "EUR"}[r.IntN(2)],
		Method: []string{"card", "wire"}[r.IntN(2)], Country: []string{"DE", "US"}[r.IntN(2)],
		At: time.Date(2026, 11, 21, 11+r.IntN(2), 0, 0, 0, time.UTC),
	}
}
