package view

import (
	"time"

	"assay/internal/event"
	"assay/internal/money"
	"assay/internal/webhook"
)

// Webhook is an address that receives events. It does not contain the secret.
type Webhook struct {
	ID             string        `json:"id"`
	URL            string        `json:"url"`
	Format         string        `json:"format"`
	Events         []event.Kind  `json:"events"`
	Items          []string      `json:"items"`
	Users          []string      `json:"users"`
	MinChange      money.Micro   `json:"minChange"`
	Alert          *WebhookAlert `json:"alert"`
	State          string        `json:"state"` // healthy, failing, disabled
	DisabledReason string        `json:"disabledReason"`
	Attempts       int           `json:"attempts"` // failed attempts since the last success
	FailingSince   *time.Time    `json:"failingSince"`
	NextAttemptAt  *time.Time    `json:"nextAttemptAt"`
	LastAttemptAt  *time.Time    `json:"lastAttemptAt"`
	LastSuccess    *time.Time    `json:"lastSuccess"`
	LastError      *string       `json:"lastError"`
	OldSecretUntil *time.Time    `json:"oldSecretUntil"`
	CreatedAt      time.Time     `json:"createdAt"`
}

// WebhookAlert holds the limits of price alerts.
type WebhookAlert struct {
	Change money.Micro `json:"change"`
	Hours  int64       `json:"hours"`
	Above  money.Micro `json:"above"`
	Below  money.Micro `json:"below"`
}

// NewWebhook is a webhook with its secret, which is shown once.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret"`
}

// WebhookOf converts a webhook to the type that the API returns.
func WebhookOf(h *webhook.Webhook) Webhook {
	out := Webhook{
		ID: id(h.ID), URL: h.URL, Format: string(h.Format), Events: h.Filter.Events, Items: h.Filter.Items, Users: h.Filter.Users,
		MinChange: h.Filter.MinChange, State: h.State(), DisabledReason: h.Disabled, Attempts: h.Attempts,
		FailingSince: when(h.FailingSince), LastAttemptAt: when(h.TriedAt), LastSuccess: when(h.DeliveredAt), LastError: text(h.LastError),
		OldSecretUntil: when(h.OldSecretUntil), CreatedAt: h.CreatedAt,
	}
	if a := h.Filter.Alert; a != nil {
		out.Alert = new(WebhookAlert(*a))
	}
	if h.Disabled == "" {
		out.NextAttemptAt = when(h.NextAt)
	}
	if out.Events == nil {
		out.Events = []event.Kind{}
	}
	for _, list := range []*[]string{&out.Items, &out.Users} {
		if *list == nil {
			*list = []string{}
		}
	}
	return out
}

// WebhookAttempt is the outcome of sending a message.
type WebhookAttempt struct {
	Delivered  bool    `json:"delivered"`
	Status     int     `json:"status"` // HTTP status; 0: no response
	DurationMs float64 `json:"durationMs"`
	Error      *string `json:"error"`
}

// WebhookAttemptOf converts an outcome to the type that the API returns.
func WebhookAttemptOf(o webhook.Outcome) WebhookAttempt {
	return WebhookAttempt{o.Error == "", o.Status, milliseconds(o.Duration), text(o.Error)}
}

// WebhookDelivery is a recent message of a webhook.
type WebhookDelivery struct {
	Number     string    `json:"number"`
	Kind       string    `json:"kind"`
	State      string    `json:"state"`
	Attempts   int       `json:"attempts"`
	Status     int       `json:"status"`
	DurationMs float64   `json:"durationMs"`
	Error      *string   `json:"error"`
	At         time.Time `json:"at"` // of the last attempt
}

// webhookDeliveries is the name of the list of deliveries in cursors.
const webhookDeliveries = "webhook_deliveries"

// WebhookCursor returns the number before which a page of deliveries begins, or 0.
func WebhookCursor(text string) (before int64, err error) {
	err = readCursor(text, webhookDeliveries, &before)
	return before, err
}

// WebhookDeliveriesOf returns a page of up to limit deliveries. If found has limit + 1
// deliveries, the page has a cursor to the next page.
func WebhookDeliveriesOf(found []webhook.Delivery, limit int) Page[WebhookDelivery] {
	return page(found, limit, func(d *webhook.Delivery) WebhookDelivery {
		return WebhookDelivery{id(d.Number), string(d.Kind), d.State, d.Attempts, d.Status, milliseconds(d.Duration), text(d.Error), d.At}
	}, func(d *webhook.Delivery) *string { return cursor(webhookDeliveries, d.Number) })
}
