package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	svix "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/webhook"
)

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
		f.Is("users of the messages after the failed message was abandoned", users(f, f.deliver()), "new")
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

// An operator resends a message after the receiver works again, and should not have to wait for the next attempt.
func TestResend_EndsTheWaitForARetry(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		f.respond(http.StatusServiceUnavailable)
		f.add(problem("a"), problem("b"))
		for range 4 {
			f.Must(f.hooks.Deliver(f.Context()))
			f.Now = f.Now.Add(3 * time.Minute)
		}
		found, err := f.hooks.Deliveries(f.Context(), id, 0, 10)
		f.Must(err)
		resent := func() {
			_, err := f.hooks.Resend(f.Context(), id, found[0].Number)
			f.Must(err)
		}
		resent()
		f.Is("deliveries after a failed resend", f.states(id), "retrying/503/5")
		f.Is("failed attempts after a failed resend", f.get(id).Attempts, 4)
		f.respond(http.StatusOK)
		f.take()
		resent()
		h := f.get(id)
		f.Is("state, attempts and error after an accepted resend", fmt.Sprint(h.State(), h.Attempts, h.LastError), "healthy0")
		f.Is("users of the messages after it", users(f, f.take())+", "+users(f, f.deliver()), "a, b")
		f.Is("deliveries", f.states(id), "delivered/200/6 delivered/200/1")
		f.respond(http.StatusServiceUnavailable)
		f.add(problem("c"))
		f.Must(f.hooks.Deliver(f.Context()))
		f.respond(http.StatusOK)
		resent()
		f.Is("attempts for a later message after an earlier one was resent", f.get(id).Attempts, 1)
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
		f.answer = func(w http.ResponseWriter, _ *http.Request) { // sends an endless body
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
			"https://localhost/", "https://LOCALHOST./", "https://a.localhost:8443/", "https://2130706433/", "https://127.1/", "https://0x7f000001/", "https://0X7F.1/", "https://0177.0.0.1./",
		} {
			_, _, err := f.hooks.Create(f.Context(), webhook.Webhook{URL: address, Format: webhook.Standard})
			f.Is(address, fault.Of(err) != nil && fault.Of(err).Fields[0].Pointer == "/url", true)
		}
		for _, address := range []string{"https://8.8.8.8/", "https://[2606:4700::1111]/", "https://127.example/", "https://localhost.example/", "https://x0x7f.example./"} {
			f.Must(f.hooks.CheckURL(address))
		}
		f.Must(f.hooks.CheckURL("https://" + strings.TrimPrefix(f.receiver.URL, "http://"))) // allowed
		// Deliver checks the address of a host name when it resolves the name.
		_, port, err := net.SplitHostPort(strings.TrimPrefix(f.receiver.URL, "http://"))
		f.Must(err)
		id, _ := f.create(webhook.Webhook{URL: "https://receiver.example/"})
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE webhook SET url = $2 WHERE id = $1`, id, "https://localhost:"+port+"/token")
			return err
		})
		f.add(problem("a"))
		f.Must(f.hooks.Deliver(f.Context()))
		h := f.get(id)
		f.Is("error of the webhook", h.LastError, "address is not public: add the host to WEBHOOK_ALLOW_HOSTS to allow it")
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
