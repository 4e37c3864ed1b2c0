package api

import (
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"assay/internal/apikey"
	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/strictjson"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/webhook"
)

// webhookHandlers serve webhooks.
type webhookHandlers struct{ *Deps }

// webhookBody describes the body of POST /api/webhooks. decodeWebhook decodes it.
type webhookBody struct {
	URL       string      `json:"url"`
	Format    string      `json:"format,omitempty"`
	Events    []string    `json:"events,omitempty"`
	Items     []string    `json:"items,omitempty"`
	Users     []string    `json:"users,omitempty"`
	MinChange money.Micro `json:"minChange,omitempty"`
	Alert     *alertBody  `json:"alert,omitempty"`
}

// webhookPatch describes the body of PATCH /api/webhooks/{id}.
type webhookPatch struct {
	URL       string      `json:"url,omitempty"`
	Events    []string    `json:"events,omitempty"`
	Items     []string    `json:"items,omitempty"`
	Users     []string    `json:"users,omitempty"`
	MinChange money.Micro `json:"minChange,omitempty"`
	Alert     *alertBody  `json:"alert,omitempty"`
	Enabled   bool        `json:"enabled,omitempty"`
}

// alertBody describes the member alert of a webhook.
type alertBody struct {
	Change money.Micro `json:"change,omitempty"`
	Hours  int64       `json:"hours,omitempty"`
	Above  money.Micro `json:"above,omitempty"`
	Below  money.Micro `json:"below,omitempty"`
}

// maxMinChange is the maximum of minChange: a change by 100 times the price.
const maxMinChange = 100 * money.Scale

func (h webhookHandlers) webhooks(c *call) (any, error) {
	found, err := h.Webhooks.List(c.Context())
	page := view.Page[view.Webhook]{Items: make([]view.Webhook, len(found))}
	for i := range found {
		page.Items[i] = view.WebhookOf(&found[i])
	}
	return page, err
}

func (h webhookHandlers) webhook(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	found, err := h.Webhooks.Get(c.Context(), id)
	return view.WebhookOf(&found), err
}

func (h webhookHandlers) createWebhook(c *call) (any, error) {
	change, format, err := decodeWebhook(c.Body, true)
	if err != nil {
		return nil, err
	}
	hook := webhook.Webhook{URL: *change.URL, Format: format}
	change.Apply(&hook)
	if err := c.mayReceive(hook.Filter.Events); err != nil {
		return nil, err
	}
	id, secret, err := h.Webhooks.Create(c.Context(), hook)
	if err != nil {
		return nil, err
	}
	found, err := h.Webhooks.Get(c.Context(), id)
	made := view.NewWebhook{Webhook: view.WebhookOf(&found), Secret: secret}
	return response{status: http.StatusCreated, location: "/api/webhooks/" + made.ID, value: made}, err
}

// mayReceive returns a fault.Forbidden if the request's API key may not read events of one of the
// kinds; none stands for all. Otherwise a webhook would send them to the key's owner.
func (c *call) mayReceive(kinds []event.Kind) error {
	if !c.allows(apikey.PricesRead) {
		return fault.New(fault.Forbidden, "forbidden", "A webhook sends events, so this API key also needs the scope %s.", apikey.PricesRead)
	}
	if len(kinds) == 0 {
		kinds = webhook.Kinds()
	}
	hidden := c.hiddenEvents()
	for _, kind := range kinds {
		if hidden.Has(kind) {
			return fault.New(fault.Forbidden, "forbidden", "This webhook would send %s, which this API key may not read. List only events that it may read in events.", kind)
		}
	}
	return nil
}

func (h webhookHandlers) changeWebhook(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	change, _, err := decodeWebhook(c.Body, false)
	if err != nil {
		return nil, err
	}
	hook, err := h.Webhooks.Get(c.Context(), id)
	if err != nil {
		return nil, err
	}
	change.Apply(&hook)
	if err := c.mayReceive(hook.Filter.Events); err != nil {
		return nil, err
	}
	if err := h.Webhooks.Update(c.Context(), id, change); err != nil {
		return nil, err
	}
	return h.webhook(c)
}

func (h webhookHandlers) deleteWebhook(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	return response{status: http.StatusNoContent}, h.Webhooks.Delete(c.Context(), id)
}

func (h webhookHandlers) rotateWebhook(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	secret, err := h.Webhooks.Rotate(c.Context(), id, c.keep())
	if err != nil {
		return nil, err
	}
	found, err := h.Webhooks.Get(c.Context(), id)
	return view.NewWebhook{Webhook: view.WebhookOf(&found), Secret: secret}, err
}

func (h webhookHandlers) testWebhook(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	out, err := h.Webhooks.Test(c.slow, id)
	return view.WebhookAttemptOf(out), err
}

func (h webhookHandlers) deliveries(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	before, err := view.WebhookCursor(c.values["cursor"])
	if err != nil {
		return nil, err
	}
	found, err := h.Webhooks.Deliveries(c.Context(), id, before, c.limit()+1)
	return view.WebhookDeliveriesOf(found, c.limit()), err
}

func (h webhookHandlers) resend(c *call) (any, error) {
	id, err := c.idOf("webhook")
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(c.values["number"], 10, 64)
	if err != nil {
		return nil, fault.New(fault.NotFound, "delivery_not_found", "This webhook has no such delivery.")
	}
	out, err := h.Webhooks.Resend(c.slow, id, number)
	return view.WebhookAttemptOf(out), err
}

// decodeWebhook decodes the settings of a webhook. A new webhook requires a URL and accepts a
// format. An existing webhook can be enabled or disabled.
func decodeWebhook(body io.Reader, isNew bool) (c webhook.Change, format webhook.Format, err error) {
	in, format := strictjson.NewReader(body), webhook.Standard
	known := []string{"url", "events", "items", "users", "minChange", "alert", "enabled"}
	if isNew {
		known[len(known)-1] = "format"
	}
	in.Object(known, func(member string) bool {
		switch {
		case member == "url":
			url, _ := in.Text(1, webhook.MaxURL)
			c.URL = &url
		case member == "format" && isNew:
			format = readWord(in, webhook.Formats())
		case member == "events":
			list := readList(in, len(webhook.Kinds()), func() event.Kind { return readWord(in, webhook.Kinds()) })
			c.Events = &list
		case member == "items":
			list := readList(in, webhook.MaxItems, func() string { return readText(in, catalog.MaxName) })
			c.Items = &list
		case member == "users":
			list := readList(in, webhook.MaxUsers, func() string { return readText(in, user.MaxID) })
			c.Users = &list
		case member == "minChange":
			c.MinChange = new(readAmount(in, maxMinChange))
		case member == "alert":
			c.Alert = new(readAlert(in))
		case member == "enabled" && !isNew:
			enabled, _ := in.Bool()
			c.Enabled = &enabled
		default:
			return false
		}
		return true
	})
	if isNew {
		in.Require("", "url", c.URL != nil)
	}
	return c, format, in.Finish()
}

func readText(in *strictjson.Reader, most int) string {
	text, _ := in.Text(1, most)
	return text
}

// readWord reads a string that must be one of the known words.
func readWord[T ~string](in *strictjson.Reader, known []T) T {
	text, ok := in.Text(1, 100)
	if ok && !slices.Contains(known, T(text)) {
		names := make([]string, len(known))
		for i, word := range known {
			names[i] = string(word)
		}
		in.Fault("must be one of %s", strings.Join(names, ", "))
	}
	return T(text)
}

// readList reads an array of up to most elements.
func readList[T any](in *strictjson.Reader, most int, read func() T) []T {
	list := []T{}
	in.Array(func(i int) {
		if i >= most {
			in.Skip()
			if i == most {
				in.Fault("exceeds the limit of %d elements", most)
			}
			return
		}
		list = append(list, read())
	})
	return list
}

// readAmount reads a decimal number from 0 to most.
func readAmount(in *strictjson.Reader, most money.Micro) money.Micro {
	text, ok := in.Number()
	if !ok {
		return 0
	}
	amount, err := money.Parse([]byte(text), 1)
	if err != nil || amount < 0 || amount > most {
		in.Fault("must be a number from 0 to %v", most)
	}
	return amount
}

// alertHours is the default window of an alert.
const alertHours = 24

// readAlert reads the limits of alerts, or null for none.
func readAlert(in *strictjson.Reader) *webhook.Alert {
	if in.Null() {
		return nil
	}
	a := &webhook.Alert{Hours: alertHours}
	if in.Object([]string{"change", "hours", "above", "below"}, func(member string) bool {
		switch member {
		case "change":
			a.Change = readAmount(in, maxMinChange)
		case "hours":
			a.Hours, _ = in.Int(1, webhook.MaxAlertHours)
		case "above":
			a.Above = readAmount(in, math.MaxInt64)
		case "below":
			a.Below = readAmount(in, math.MaxInt64)
		default:
			return false
		}
		return true
	}) && a.Change == 0 && a.Above == 0 && a.Below == 0 {
		in.FaultAt("/alert", "needs change, above or below")
	}
	return a
}
