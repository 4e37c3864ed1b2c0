package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog/catalogtest"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/webhook"
)

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
			f.Is("the number is greater than in the previous message", number > next[parts[1]], true)
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
			f.Faults = func(string) error { return killed } // the first instance can no longer write
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
		f.Must(event.Retain(f.Context(), f.DB, 7*24*time.Hour))
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

// All events of a webhook were deleted while it was disabled. Afterwards it must not stay due.
func TestDeliver_ContinuesWhenAllEventsExpired(t *testing.T) {
	each(t, func(f *fixture) {
		id, _ := f.create(webhook.Webhook{})
		items := catalogtest.Items(f.Fixture, 730, "A")
		set := func(enabled bool) { f.Must(f.hooks.Update(f.Context(), id, webhook.Change{Enabled: &enabled})) }
		deliver := func() []got {
			f.Helper()
			ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
			defer cancel()
			f.Must(f.hooks.Deliver(ctx))
			return f.take()
		}
		expire := func() {
			f.Now = f.Now.Add(4 * 24 * time.Hour)
			f.Must(event.Retain(f.Context(), f.DB, 7*24*time.Hour))
		}
		set(false)
		f.price(items, money.Scale)
		expire()
		set(true)
		f.Is("messages when all events were lost", len(deliver()), 0)
		f.Is("deliveries", f.states(id), "lost/0/0")
		f.price(items, 2*money.Scale)
		f.Is("messages after a new price", len(deliver()), 1)
		f.Is("deliveries after a new price", f.states(id), "lost/0/0 delivered/204/1")

		// The loss is recorded while an older event still waits. That event is deleted later.
		f.add(problem("kept"))
		f.price(items, 3*money.Scale)
		expire()
		f.respond(http.StatusInternalServerError)
		f.Is("messages of a receiver that is down", len(deliver()), 1)
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`DELETE FROM event`)
			return err
		})
		f.Now = f.Now.Add(time.Minute)
		f.Is("messages when the last event was deleted too", len(deliver()), 0)
	})
}
