package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	svix "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/webhook"
)

// got is a message that a receiver got.
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

// service returns the service of a process. It may send to the receiver.
func (f *fixture) service(owner string) *webhook.Service {
	f.Helper()
	f.Tx(func(tx *db.Tx) error { return refresh.Register(tx, refresh.Instance{Owner: owner, StartedAt: f.Now}) })
	items := view.New(view.Options{Store: f.DB, Feed: f.feed, Currency: "USD", Now: func() time.Time { return f.Now }}).Items
	return webhook.New(webhook.Options{
		Store: f.DB, Feed: f.feed, Changes: items.ChangeData, Currency: "USD", Owner: owner,
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

func TestDeliver_SignsEventsInTheirOrder(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Now() // the library compares the timestamp with the clock
		f.add(problem("earlier"))
		id, secret := f.create(webhook.Webhook{})
		f.add(problem("a"), problem("b"), event.ProviderUp{Provider: "sim"})
		messages := f.deliver()
		f.Is("users", users(f, messages), "a b ")
		verifier, err := svix.NewWebhook(secret)
		f.Must(err)
		for _, m := range messages {
			f.Must(verifier.Verify([]byte(m.body), m.header))
			f.Is("a changed body fails the verification", verifier.Verify([]byte(m.body+" "), m.header) != nil, true)
		}
		want := fmt.Sprintf(`{"type":"ledger.problem","timestamp":%q,"data":{"userId":"a","status":"failed","checks":["chain"],"failureCount":1}}`,
			f.Now.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano))
		f.Is("body of the first message", messages[0].body, want)
		f.Is("messages after all were delivered", len(f.deliver()), 0)
		f.Is("deliveries", f.states(id), "delivered/204/1 delivered/204/1 delivered/204/1")
		f.Is("counted attempts", webhook.Counts(f.DB)[webhook.Delivered], int64(3))
	})
}

func TestDeliver_AReceiverThatWasDownGetsEveryEventInOrder(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.respond(http.StatusInternalServerError)
		var want, tried []string
		for minute := range 60 {
			user := strconv.Itoa(minute)
			want = append(want, user)
			f.add(problem(user))
			for _, m := range f.deliver() {
				tried = append(tried, m.id())
			}
			f.Now = f.Now.Add(time.Minute)
		}
		f.Is("the number of attempts in an hour is 12 to 18", len(tried) >= 12 && len(tried) <= 18, true)
		for _, id := range tried {
			f.Is("id of an attempt while the receiver fails", id, tried[0])
		}
		h := f.get(id)
		f.Is("the webhook shows attempts and the error", h.Attempts == len(tried) && !h.FailingSince.IsZero() && h.LastError == "status 500", true)
		f.respond(http.StatusOK)
		f.Now = f.Now.Add(5 * time.Minute)
		messages := f.deliver()
		f.Is("users", users(f, messages), strings.Join(want, " "))
		f.Is("id of the first event", messages[0].id(), tried[0])
		f.Is("failed attempts after the receiver works again", f.get(id).Attempts, 0)
		seen := map[string]bool{}
		for _, m := range messages {
			f.Is("the id was used before", seen[m.id()], false)
			seen[m.id()] = true
		}
	})
}

func TestDeliver_GivesUpAfterADayAndResends(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.respond(http.StatusServiceUnavailable)
		f.add(problem("old"))
		first := f.deliver()
		for range 50 {
			f.Now = f.Now.Add(29 * time.Minute)
			f.Must(f.hooks.Deliver(f.Context()))
		}
		f.add(problem("new"))
		f.Now = f.Now.Add(30 * time.Minute)
		f.respond(http.StatusOK)
		f.take()
		f.Is("users of the messages after the failed one was given up", users(f, f.deliver()), "new")
		found, err := f.hooks.Deliveries(f.Context(), id, 0, 10)
		f.Must(err)
		f.Is("states of both deliveries", found[0].State+" "+found[1].State, "delivered failed")
		f.Is("attempts in a day are more than 20", found[1].Attempts > 20, true)
		out, err := f.hooks.Resend(f.Context(), id, found[1].Number)
		f.Must(err)
		f.Is("outcome of the re-sent event", fmt.Sprint(out.Status, out.Error), "200")
		again := f.take()
		f.Is("user of the re-sent event", users(f, again), "old")
		f.Is("id of the re-sent event", again[0].id(), first[0].id())
		f.Is("the re-sent event is delivered", strings.HasPrefix(f.states(id), "delivered/200/"), true)
		_, err = f.hooks.Resend(f.Context(), id, 1)
		f.Is("error for an unknown delivery", fault.Of(err).Code, "delivery_not_found")
	})
}

func TestDeliver_DisablesAReceiverThatIsGoneOrAlwaysFails(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.respond(http.StatusGone)
		f.add(problem("a"), problem("b"))
		f.Is("attempts before the webhook is disabled", len(f.deliver()), 1)
		f.Is("reason why the webhook is disabled", f.get(id).Disabled, webhook.Gone)
		f.Now = f.Now.Add(time.Hour)
		f.Is("messages while the webhook is disabled", len(f.deliver()), 0)
		f.respond(http.StatusOK)
		enabled := true
		f.Must(f.hooks.Update(f.Context(), id, webhook.Change{Enabled: &enabled}))
		f.Is("events after it is enabled", users(f, f.deliver()), "a b")
		f.respond(http.StatusBadRequest)
		for range 6 * 48 {
			f.add(problem("c"))
			f.Must(f.hooks.Deliver(f.Context()))
			f.Now = f.Now.Add(30 * time.Minute)
		}
		f.Is("reason why the webhook is disabled after five days", f.get(id).Disabled, webhook.Failing)
		states, err := webhook.States(f.Context(), f.DB)
		f.Must(err)
		f.Is("webhooks by state", fmt.Sprint(states), "map[disabled:0 failing:1 healthy:0]")
	})
}

func TestDeliver_LosesNothingWhenTheClockIsSet(t *testing.T) {
	each(t, func(f *fixture) {
		f.create(webhook.Webhook{})
		f.respond(http.StatusInternalServerError)
		f.add(problem("a"), problem("b"))
		f.Is("attempts while the receiver fails", len(f.deliver()), 1)
		start := f.Now
		for _, days := range []int{400, -400, 0} {
			f.Now = start.AddDate(0, 0, days)
			f.Is(fmt.Sprint("attempts with the clock off by ", days, " days"), len(f.deliver()), 1)
		}
		f.respond(http.StatusOK)
		f.Now = start.Add(31 * time.Minute)
		f.Is("users of the messages", users(f, f.deliver()), "a b")
	})
}

func TestDeliver_FollowsNoRedirectAndBoundsResponses(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.respond(http.StatusPermanentRedirect, "Location", f.receiver.URL+"/other")
		f.add(problem("a"))
		f.Is("requests before the redirect is refused", len(f.deliver()), 1)
		f.Is("error of the webhook", f.get(id).LastError, "redirects are not followed: set the final address")
		f.respond(http.StatusTooManyRequests, "Retry-After", "120")
		f.Now = f.Now.Add(10 * time.Second)
		f.Is("requests after 10 s", len(f.deliver()), 1)
		f.Is("the next attempt is later than Retry-After", f.get(id).NextAt.Sub(f.Now) > 100*time.Second, true)
		f.receiver.mu.Lock()
		f.answer = func(w http.ResponseWriter, _ *http.Request) { // sends without end
			for w.(*recorder).ResponseWriter != nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}
		f.receiver.mu.Unlock()
		f.Now = f.Now.Add(time.Hour)
		f.Must(f.hooks.Deliver(f.Context()))
		f.Is("failed attempts after a response with an endless body", f.get(id).Attempts, 0)
	})
}

func TestDeliver_LimitsTheTimeOfAnAttempt(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		release := make(chan struct{})
		defer close(release)
		f.answer = func(http.ResponseWriter, *http.Request) { <-release }
		f.add(problem("a"))
		f.Must(f.hooks.Deliver(f.Context()))
		f.Is("error of the webhook", f.get(id).LastError, "timeout")
	})
}

func TestCreate_RefusesPrivateAddresses(t *testing.T) {
	each(t, func(f *fixture) {
		for _, address := range []string{
			"https://127.0.0.1/x", "https://10.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/x", "http://example.com/x",
			"ftp://example.com", "/path", "https://user:secret@example.com/", "https://example.com/#f", "https:///x",
		} {
			_, _, err := f.hooks.Create(f.Context(), webhook.Webhook{URL: address, Format: webhook.Standard})
			f.Is(address, fault.Of(err) != nil && fault.Of(err).Fields[0].Pointer == "/url", true)
		}
		// A name is checked when it is resolved.
		_, port, err := net.SplitHostPort(strings.TrimPrefix(f.receiver.URL, "http://"))
		f.Must(err)
		id, _ := f.create(webhook.Webhook{URL: "https://localhost:" + port + "/token"})
		f.add(problem("a"))
		f.Must(f.hooks.Deliver(f.Context()))
		h := f.get(id)
		f.Is("error of the webhook", h.LastError, "address is not public: name the host in WEBHOOK_ALLOW_HOSTS to allow it")
		f.Is("error of an unknown address has no path", strings.Contains(h.LastError, "token"), false)
	})
}

func TestRotate_BothSecretsSignUntilTheOlderEnds(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Now()
		id, first := f.create(webhook.Webhook{})
		second, err := f.hooks.Rotate(f.Context(), id, time.Hour)
		f.Must(err)
		verify := func() (ok [2]bool) {
			f.add(problem("a"))
			m := f.deliver()[0]
			for i, secret := range []string{first, second} {
				verifier, err := svix.NewWebhook(secret)
				f.Must(err)
				ok[i] = verifier.VerifyIgnoringTimestamp([]byte(m.body), m.header) == nil
			}
			return ok
		}
		f.Is("the older and the newer secret verify during the rotation", verify(), [2]bool{true, true})
		f.Now = f.Now.Add(61 * time.Minute)
		f.Is("the older and the newer secret verify after the rotation", verify(), [2]bool{false, true})
	})
}

func TestTest_SendsAMessageAtOnce(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		disabled := false
		f.Must(f.hooks.Update(f.Context(), id, webhook.Change{Enabled: &disabled}))
		out, err := f.hooks.Test(f.Context(), id)
		f.Must(err)
		f.Is("outcome of the test message", fmt.Sprint(out.Status, out.Error), "204")
		f.Is("the body has the type webhook.test", strings.Contains(f.take()[0].body, `"type":"webhook.test"`), true)
		f.respond(http.StatusTeapot)
		out, err = f.hooks.Test(f.Context(), id)
		f.Must(err)
		f.Is("outcome of a refused test message", fmt.Sprint(out.Status, out.Error), "418status 418")
		_, err = f.hooks.Test(f.Context(), id+1)
		f.Is("error for an unknown webhook", fault.Of(err).Code, "webhook_not_found")
		f.Is("reason why the webhook is disabled", f.get(id).Disabled, webhook.ByOperator)
		f.Must(f.hooks.Delete(f.Context(), id))
		f.Is("error of a second Delete", fault.Of(f.hooks.Delete(f.Context(), id)).Code, "webhook_not_found")
	})
}

func TestDeliver_FiltersEvents(t *testing.T) {
	each(t, func(f *fixture) {
		ids := catalogtest.Items(f.Fixture, 730, "A", "B", "C")
		syncs := inventory.Service{InTx: f.DB.InTx, Queued: func() {}, Inspectable: func() {}}
		_, err := syncs.Sync(f.Context(), "u", inventory.Push{AppID: 730, ContextID: "2", SnapshotAt: f.Now, Assets: []inventory.Asset{{AssetID: "1", Name: "B", Amount: 1}}}, inventory.Normal)
		f.Must(err)
		f.price(ids, 10*money.Scale)
		filters := map[string]webhook.Filter{
			"all":    {},
			"kind":   {Events: []event.Kind{event.LedgerHasProblem}},
			"item":   {Events: []event.Kind{event.PriceChanged}, Items: []string{"A", "none"}},
			"user":   {Users: []string{"u"}},
			"change": {Events: []event.Kind{event.PriceChanged}, MinChange: money.Scale / 20},
		}
		for name, filter := range filters {
			f.create(webhook.Webhook{URL: f.receiver.URL + "/" + name, Filter: filter})
		}
		check := func(what string, want map[string]string) {
			f.Helper()
			var mu sync.Mutex
			paths := map[string]string{}
			f.answer = func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				paths[r.Header.Get("Webhook-Id")] = r.URL.Path[1:]
			}
			f.Must(f.hooks.Deliver(f.Context()))
			got := map[string]string{}
			for _, m := range f.take() {
				var body struct {
					Type string
					Data struct {
						UserID string
						Items  []struct{ MarketHashName string }
					}
				}
				f.Must(json.Unmarshal([]byte(m.body), &body))
				text := body.Type + " " + body.Data.UserID
				for _, i := range body.Data.Items {
					text += i.MarketHashName
				}
				got[paths[m.id()]] += text + ";"
			}
			f.Is(what, got, want)
		}
		f.add(problem("u"))
		check("event of the user", map[string]string{"all": "ledger.problem u;", "kind": "ledger.problem u;", "user": "ledger.problem u;"})
		f.add(problem("v"))
		check("event of another user", map[string]string{"all": "ledger.problem v;", "kind": "ledger.problem v;"})
		f.add(event.ProviderUp{Provider: "sim"})
		check("event without a user", map[string]string{"all": "provider.up ;", "user": "provider.up ;"})
		f.price(ids, 10_400_000)
		check("prices + 4 %", map[string]string{"all": "price.changed ABC;", "item": "price.changed A;", "user": "price.changed B;"})
		f.price(ids[:2], 9_800_000)
		check("prices - 5.8 %", map[string]string{"all": "price.changed AB;", "item": "price.changed A;", "user": "price.changed B;", "change": "price.changed AB;"})
		f.price(ids[2:], 9_000_000)
		check("another item", map[string]string{"all": "price.changed C;", "change": "price.changed C;"})
	})
}

func TestDeliver_InstancesShareWebhooks(t *testing.T) {
	each(t, func(f *fixture) {
		two := f.service("two")
		for range 6 {
			f.create(webhook.Webhook{})
		}
		for i := range 10 {
			f.add(problem(strconv.Itoa(i)))
		}
		dbtest.AtOnce(2, func(i int) {
			if err := []*webhook.Service{f.hooks, two}[i].Deliver(f.Context()); err != nil {
				f.Error(err)
			}
		})
		next := map[string]int64{}
		messages := f.take()
		f.Is("number of messages", len(messages), 60)
		for _, m := range messages {
			parts := strings.Split(m.id(), "_")
			number, err := strconv.ParseInt(parts[2], 10, 64)
			f.Must(err)
			f.Is("the number is above that of the message before", number > next[parts[1]], true)
			next[parts[1]] = number
		}
	})
}

func TestDeliver_AKilledInstanceLosesNoEvent(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.add(problem("a"), problem("b"))
		two := f.service("two")
		killed := errors.New("killed")
		f.answer = func(http.ResponseWriter, *http.Request) {
			f.Faults = func(string) error { return killed } // the first instance writes nothing any more
		}
		f.Is("the delivery ended with the error of the kill", errors.Is(f.hooks.Deliver(f.Context()), killed), true)
		f.Faults = nil
		f.respond(http.StatusOK)
		first := f.take()
		f.Must(two.Deliver(f.Context()))
		f.Is("messages while the lease of the killed instance lasts", len(f.take()), 0)
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`DELETE FROM instance WHERE owner = 'one'`)
			return err
		})
		f.Must(two.Deliver(f.Context()))
		messages := f.take()
		f.Is("users of the messages", users(f, messages), "a b")
		f.Is("id of the repeated message", messages[0].id(), first[0].id())
		f.Is("deliveries", f.states(id), "delivered/200/1 delivered/200/1")
	})
}

func TestDeliver_RefusesLateWritesOfAStoppedInstance(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.add(problem("a"))
		two := f.service("two")
		f.answer = func(w http.ResponseWriter, _ *http.Request) { // the first instance is stopped while it sends
			f.respond(http.StatusOK)
			f.Tx(func(tx *db.Tx) error {
				_, err := tx.Exec(`DELETE FROM instance WHERE owner = 'one'`)
				return err
			})
			f.Must(two.Deliver(f.Context()))
			w.WriteHeader(http.StatusInternalServerError)
		}
		f.Must(f.hooks.Deliver(f.Context()))
		h := f.get(id)
		f.Is("failed attempts", h.Attempts, 0)
		f.Is("deliveries", f.states(id), "delivered/200/1")
	})
}

func TestDeliver_ReportsEventsThatExpired(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		items := catalogtest.Items(f.Fixture, 730, "A")
		f.add(problem("kept"))
		f.price(items, money.Scale)
		f.Now = f.Now.Add(4 * 24 * time.Hour)
		f.price(items, 2*money.Scale)
		f.Tx(func(tx *db.Tx) error { return event.Retain(tx, 7*24*time.Hour) })
		f.respond(http.StatusInternalServerError)
		f.Is("messages of a receiver that is down", len(f.deliver()), 1)
		f.respond(http.StatusOK)
		f.Now = f.Now.Add(time.Minute)
		messages := f.deliver()
		f.Is("messages after events were lost", len(messages), 2)
		f.Is("the last message has the newest price", strings.Contains(messages[1].body, `"currentPrice":2,`), true)
		f.Is("deliveries", f.states(id), "delivered/200/2 lost/0/0 delivered/200/1")
	})
}

func TestDeliver_SplitsManyChanges(t *testing.T) {
	each(t, func(f *fixture) {
		var names []string
		for i := range 450 {
			names = append(names, "Item "+strconv.Itoa(i))
		}
		items := catalogtest.Items(f.Fixture, 730, names...)
		id, _ := f.create(webhook.Webhook{})
		f.price(items, money.Scale)
		tries := 0
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			if tries++; tries == 2 {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
		first := f.deliver()
		f.Is("messages until one fails", len(first), 2)
		f.Now = f.Now.Add(time.Minute)
		rest := f.deliver()
		f.Is("messages after the receiver works again", len(rest), 2)
		f.Is("id of the message that failed", rest[0].id(), first[1].id())
		var sizes []int
		for _, m := range []got{first[0], rest[0], rest[1]} {
			sizes = append(sizes, strings.Count(m.body, `"marketHashName"`))
		}
		f.Is("changes of the messages", fmt.Sprint(sizes), "[200 200 50]")
		found, err := f.hooks.Deliveries(f.Context(), id, 0, 10)
		f.Must(err)
		_, err = f.hooks.Resend(f.Context(), id, found[1].Number)
		f.Must(err)
		again := f.take()
		f.Is("body of a message that is sent again", again[0].body, rest[0].body)
	})
}

func TestDeliver_AlertsWhenALimitIsCrossed(t *testing.T) {
	each(t, func(f *fixture) {
		items := catalogtest.Items(f.Fixture, 730, "A")
		price := func(hours int, price money.Micro) []got {
			f.Now = f.Now.Add(time.Duration(hours) * time.Hour)
			f.price(items, price*money.Scale/10)
			return f.deliver()
		}
		price(0, 100)
		f.create(webhook.Webhook{Filter: webhook.Filter{Alert: &webhook.Alert{Change: money.Scale / 5, Hours: 24, Above: 20 * money.Scale, Below: 5 * money.Scale}}})
		f.create(webhook.Webhook{Format: webhook.Slack, Filter: webhook.Filter{Alert: &webhook.Alert{Change: money.Scale / 5, Hours: 24}}})
		for _, step := range []struct {
			hours  int
			price  money.Micro // tenths
			reason string
		}{
			{1, 110, ""},
			{1, 119, ""},
			{1, 120, "moved"}, // 20 % in steps
			{1, 125, ""},      // was reported
			{20, 118, ""},     // + 18 %
			{1, 121, ""},      // + 10 % since the second price
			{30, 150, "moved"},
			{1, 199, ""},
			{1, 200, "above"},
			{1, 210, ""},
			{48, 100, "moved"},
			{1, 50, "below"},
			{1, 40, ""},
			{1, 60, ""},
			{30, 60, ""},
		} {
			reasons := ""
			for _, m := range price(step.hours, step.price) {
				var body struct {
					Type string
					Data struct {
						Alerts []struct{ Reason, MarketHashName string }
						Items  []struct{ MarketHashName string }
					}
				}
				f.Must(json.Unmarshal([]byte(m.body), &body))
				if body.Type == "" {
					continue // Slack
				}
				f.Is("type, alerts and items", fmt.Sprint(body.Type, len(body.Data.Alerts), len(body.Data.Items), body.Data.Items[0].MarketHashName), "price.alert1 1A")
				reasons += body.Data.Alerts[0].Reason
			}
			f.Is(fmt.Sprint("reason at ", step.price), reasons, step.reason)
		}
		for _, m := range price(48, 90) {
			if strings.HasPrefix(m.body, `{"text"`) {
				f.Is("text for Slack", m.body, `{"text":"Price alert:\nA: 6 → 9 USD (+50.0 % in 24 h)"}`)
			}
		}
	})
}

func TestDeliver_WritesTextsForSlackAndDiscord(t *testing.T) {
	each(t, func(f *fixture) {
		items := catalogtest.Items(f.Fixture, 730, "AK-47 | <Redline> & more")
		f.price(items, 10*money.Scale)
		f.create(webhook.Webhook{Format: webhook.Slack})
		f.price(items, 11*money.Scale)
		f.add(problem("u"))
		messages := f.deliver()
		f.Is("prices for Slack", messages[0].body, `{"text":"Prices changed:\nAK-47 | \u0026lt;Redline\u0026gt; \u0026amp; more: 10 → 11 USD (+10.0 %)"}`)
		f.Is("event for Slack", messages[1].body, `{"text":"ledger.problem: user u: failed"}`)
		f.create(webhook.Webhook{Format: webhook.Discord})
		names := make([]string, 30)
		for i := range names {
			names[i] = strconv.Itoa(i) + strings.Repeat("★", 150)
		}
		f.price(catalogtest.Items(f.Fixture, 730, names...), money.Scale)
		for _, m := range f.deliver() {
			var body struct{ Content string }
			f.Must(json.Unmarshal([]byte(m.body), &body))
			if n := len([]rune(body.Content)); n > 2000 || body.Content != "" && n != 2000 {
				f.Errorf("got a text of %d characters for Discord, want 2,000", n)
			}
		}
	})
}

// TestRun_SendsEventsAsTheyAreWritten runs the service with the real clock.
func TestRun_SendsEventsAsTheyAreWritten(t *testing.T) {
	each(t, func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		arrived := make(chan struct{}, 10)
		f.answer = func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }
		running.Go(func() { f.feed.Run(ctx) })
		running.Go(func() { f.hooks.Run(ctx) })
		f.create(webhook.Webhook{})
		f.hooks.Wake()
		f.Tx(func(tx *db.Tx) error { return event.Add(tx, problem("a")) })
		<-arrived
	})
}
