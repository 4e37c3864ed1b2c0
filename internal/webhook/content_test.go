package webhook_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/catalog/catalogtest"
	"assay/internal/event"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/webhook"
)

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
		f.add(event.InventoryPriced{UserID: "u", AppID: 730, ContextID: "2", Rows: 1})
		check("inventory of the user", map[string]string{"all": "inventory.priced u;", "user": "inventory.priced u;"})
		f.add(event.InventoryPriced{UserID: "v", AppID: 730, ContextID: "2", Rows: 1})
		check("inventory of another user", map[string]string{"all": "inventory.priced v;"})
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
		alerts, _ := f.create(webhook.Webhook{Filter: webhook.Filter{Alert: &webhook.Alert{Change: money.Scale / 5, Hours: 24, Above: 20 * money.Scale, Below: 5 * money.Scale}}})
		f.create(webhook.Webhook{Format: webhook.Slack, Filter: webhook.Filter{Events: []event.Kind{webhook.AlertKind}, Alert: &webhook.Alert{Change: money.Scale / 5, Hours: 24}}})
		for _, step := range []struct {
			hours  int
			price  money.Micro // in tenths of USD
			reason string
		}{
			{1, 110, ""},
			{1, 119, ""},
			{1, 120, "moved"}, // 20 % in steps
			{1, 125, ""},      // already reported
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
					continue // a message for Slack
				}
				f.Is("type, alerts and items", fmt.Sprint(body.Type, len(body.Data.Alerts), len(body.Data.Items), body.Data.Items[0].MarketHashName), "price.alert1 1A")
				reasons += body.Data.Alerts[0].Reason
			}
			f.Is(fmt.Sprint("reason at ", step.price), reasons, step.reason)
		}
		texts := 0
		for _, m := range price(48, 90) {
			if strings.HasPrefix(m.body, `{"text"`) {
				texts++
				f.Is("text for Slack", m.body, `{"text":"Price alert:\nA: 6 → 9 USD (+50.0 % in 24 h)"}`)
			}
		}
		f.Is("alerts of the webhook with price.alert in its events", texts, 1)
		listed, err := f.hooks.Deliveries(f.Context(), alerts, 0, 1)
		f.Must(err)
		f.Is("kind of the delivery of an alert", listed[0].Kind, webhook.AlertKind)
		f.add(problem("u"))
		f.Is("events besides alerts", len(f.deliver()), 1) // only the webhook of all events gets it
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

// A change of figures is not sent, and does not hold back later events.
func TestDeliver_LeavesOutChangesOfFigures(t *testing.T) {
	each(t, func(f *fixture) {
		ids := catalogtest.Items(f.Fixture, 730, "A")
		f.create(webhook.Webhook{})
		f.add(event.PricesChanged{Figures: ids})
		f.Is("messages", len(f.deliver()), 0)
		f.add(event.PricesChanged{Figures: ids}, problem("u"))
		f.Is("users of the messages", users(f, f.deliver()), "u")
	})
}
