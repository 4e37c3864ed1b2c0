package webhook_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/webhook"
)

// got is a message that a receiver received.
type got struct {
	header http.Header
	body   string
	status int
}

func (g *got) id() string { return g.header.Get("Webhook-Id") }

// receiver is an HTTP server that records messages.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []got
	answer func(w http.ResponseWriter, r *http.Request) // nil: 204
}

func newReceiver(tb testing.TB) *receiver {
	tb.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		answer, recorded := r.answer, &recorder{ResponseWriter: w, status: 200}
		r.mu.Unlock()
		if answer == nil {
			recorded.WriteHeader(http.StatusNoContent)
		} else {
			answer(recorded, req)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, got{req.Header, string(body), recorded.status})
	}))
	tb.Cleanup(r.Close)
	return r
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// respond makes the receiver respond with a status.
func (r *receiver) respond(status int, header ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

// take returns the messages since the last call.
func (r *receiver) take() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.got
	r.got = nil
	return out
}

// fixture is a database with a receiver and a service of one process.
type fixture struct {
	*dbtest.Fixture
	feed *event.Feed
	*receiver
	hooks *webhook.Service
}

func each(t *testing.T, test func(f *fixture)) {
	t.Helper()
	dbtest.Each(t, func(d *dbtest.Fixture) {
		f := &fixture{Fixture: d, feed: event.NewFeed(d.DB, slog.New(slog.DiscardHandler)), receiver: newReceiver(d)}
		f.hooks = f.service("one")
		test(f)
	})
}

// service returns the webhook service of a process. The service may send messages to the address of
// the receiver.
func (f *fixture) service(owner string) *webhook.Service {
	f.Helper()
	f.Tx(func(tx *db.Tx) error { return refresh.Register(tx, refresh.Instance{Owner: owner, StartedAt: f.Now}) })
	feeds := view.New(view.Options{Store: f.DB, Feed: f.feed, Currency: "USD", Now: func() time.Time { return f.Now }}).Feeds
	return webhook.New(webhook.Options{
		Store: f.DB, Feed: f.feed, Changes: feeds.ChangeData, Currency: "USD", Owner: owner,
		Dialer: provider.NewDialer([]string{strings.TrimPrefix(f.receiver.URL, "http://")}), Timeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
}

func (f *fixture) create(h webhook.Webhook) (id int64, secret string) {
	f.Helper()
	if h.URL == "" {
		h.URL = f.receiver.URL + "/hook"
	}
	if h.Format == "" {
		h.Format = webhook.Standard
	}
	id, secret, err := f.hooks.Create(f.Context(), h)
	f.Must(err)
	return id, secret
}

// add writes events and numbers them.
func (f *fixture) add(data ...event.Data) {
	f.Helper()
	for _, d := range data {
		f.Tx(func(tx *db.Tx) error { return event.Add(tx, d) })
	}
	f.Must(f.feed.Number(f.Context()))
}

// problem returns an event of a user.
func problem(user string) event.Data {
	return event.LedgerProblem{UserID: user, Status: "failed", Checks: []string{"chain"}, FailureCount: 1}
}

// price stores new prices of items in one transaction, with an event.
func (f *fixture) price(items []int64, price money.Micro) {
	f.Helper()
	f.Now = f.Now.Add(time.Second)
	f.Tx(func(tx *db.Tx) error {
		at := db.Micros(tx.Now())
		for _, item := range items {
			if _, err := tx.Exec(`INSERT INTO price_point (item_id, at, updated_at, checked_at, quotes_at, price, status, average, median, consensus, interval_low, interval_high,
				candidate, candidate_at, rate_set, level_set, method_version, used, method, guard, quotes)
				VALUES ($1, $2, $2, $2, $2, $3, 0, $3, $3, $3, $3, $3, 0, 0, 0, 0, 1, '1', 'consensus', '', '')`, item, at, int64(price)); err != nil {
				return err
			}
		}
		return event.Add(tx, event.PricesChanged{Items: items})
	})
	f.Must(f.feed.Number(f.Context()))
}

func (f *fixture) deliver() []got {
	f.Helper()
	f.Must(f.hooks.Deliver(f.Context()))
	return f.take()
}

// users returns the users of ledger events in messages.
func users(f *fixture, messages []got) string {
	f.Helper()
	var out []string
	for _, m := range messages {
		var body struct {
			Data struct{ UserID string }
		}
		f.Must(json.Unmarshal([]byte(m.body), &body))
		out = append(out, body.Data.UserID)
	}
	return strings.Join(out, " ")
}

func (f *fixture) get(id int64) webhook.Webhook {
	f.Helper()
	h, err := f.hooks.Get(f.Context(), id)
	f.Must(err)
	return h
}

// states returns the stored deliveries as "state/status/attempts", oldest first.
func (f *fixture) states(id int64) string {
	f.Helper()
	found, err := f.hooks.Deliveries(f.Context(), id, 0, 1000)
	f.Must(err)
	var out []string
	for i := range found {
		d := &found[len(found)-1-i]
		out = append(out, fmt.Sprintf("%s/%d/%d", d.State, d.Status, d.Attempts))
	}
	return strings.Join(out, " ")
}
