package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// hookReceiver accepts messages and checks their order and signatures.
type hookReceiver struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex
	verifier *webhooks.Webhook
	last     int64
	bodies   map[int64]string // by number
	repeated int
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	r := &hookReceiver{t: t, bodies: map[int64]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.verifier.Verify(body, req.Header); err != nil {
		r.t.Errorf("message %s: got error %v, want a valid signature", req.Header.Get("Webhook-Id"), err)
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(req.Header.Get("Webhook-Id"), "msg_1_"), 10, 64)
	if err != nil {
		r.t.Error(err)
	}
	before, known := r.bodies[number]
	switch {
	case number < r.last:
		r.t.Errorf("got message %d after %d, want a higher number", number, r.last)
	case known && before != string(body):
		r.t.Errorf("message %d again: got a different body, want the same", number)
	case known:
		r.repeated++
	}
	r.last, r.bodies[number] = number, string(body)
	w.WriteHeader(http.StatusNoContent)
}

func (r *hookReceiver) has(number int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.bodies[number]
	return ok
}

// eventsAfter returns the numbers of all events after a number.
func (s *server) eventsAfter(after int64) (numbers []int64) {
	s.t.Helper()
	for {
		var page struct {
			Items    []struct{ Number string }
			UpToDate bool
		}
		s.get("/api/events?after="+strconv.FormatInt(after, 10), &page)
		for _, e := range page.Items {
			after, _ = strconv.ParseInt(e.Number, 10, 64)
			numbers = append(numbers, after)
		}
		if page.UpToDate {
			return numbers
		}
	}
}

// TestWebhooks_SendEveryEventInOrderWhenServersAreKilled kills servers while they send.
func TestWebhooks_SendEveryEventInOrderWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		h, url := simulator(t, sim.Options{Names: 1_500, Frozen: true})
		receiver := newHookReceiver(t)
		env := []string{"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + url, "WEBHOOK_ALLOW_HOSTS=" + strings.TrimPrefix(receiver.URL, "http://")}
		var servers []*server
		if on == onSQLite {
			servers = append(servers, newServer(t, env...))
		} else {
			database := pgtest.Shared(t).NewDatabase(t)
			for range 3 {
				servers = append(servers, newServerOn(t, database, env...))
			}
		}
		for _, s := range servers {
			s.start()
		}
		s := servers[0]
		pushNames(s, h.Names(), 1)
		s.awaitPriced()
		status, body, err := s.call(http.MethodPost, "/api/webhooks", strings.NewReader(fmt.Sprintf(`{"url":%q}`, receiver.URL+"/hook")))
		if err != nil || status != http.StatusCreated {
			t.Fatalf("new webhook: got %d %s, %v, want 201", status, body, err)
		}
		var made struct{ ID, Secret string }
		if err := json.Unmarshal(body, &made); err != nil || made.ID != "1" {
			t.Fatalf("new webhook: got %s, %v, want the id 1", body, err)
		}
		receiver.mu.Lock()
		if receiver.verifier, err = webhooks.NewWebhook(made.Secret); err != nil {
			t.Fatal(err)
		}
		receiver.mu.Unlock()
		before := s.eventsAfter(0) // the webhook gets all later events
		for range randtest.Count(4, 40) {
			h.Advance(500)
			s.await("a refresh", func() bool {
				status, _, err := s.call(http.MethodPost, "/api/market-prices/refresh?force=1", nil)
				return err == nil && status == http.StatusAccepted
			})
			victim := servers[rand.IntN(len(servers))]
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			victim.kill()
			victim.spawn()
			victim.awaitHealth()
			s.awaitEnd()
		}
		want := s.eventsAfter(before[len(before)-1])
		s.await("the last event", func() bool { return receiver.has(want[len(want)-1]) })
		for _, number := range want {
			if !receiver.has(number) {
				t.Errorf("got no message of event %d, want one", number)
			}
		}
		t.Logf("%d events in %d messages, %d repeated", len(want), len(receiver.bodies), receiver.repeated)
		if len(want) < 8 {
			t.Errorf("got %d events, want at least 8", len(want))
		}
	})
}
