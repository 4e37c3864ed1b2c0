package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	users "assay/internal/user"
	"assay/internal/view"
	"assay/internal/webhook"
)

const (
	deliveriesPerPage = 50
	maxHookChange     = 10_000 // percent
)

// webhooksPage lists webhooks and has the form of a new one.
type webhooksPage struct {
	frame
	Webhooks []view.Webhook
	Form     webhookForm
	API      apiCall
}

// webhookForm is a form with the settings of a webhook.
type webhookForm struct {
	form
	view.Webhook // empty: a new one
	Kinds        []event.Kind
	Formats      []webhook.Format // empty: the format cannot be changed
}

// webhookEntries returns the settings of a webhook as entries of the form.
func webhookEntries(h *view.Webhook) url.Values {
	entries := url.Values{
		"url": {h.URL}, "items": {strings.Join(h.Items, "\n")}, "users": {strings.Join(h.Users, "\n")}, "minChange": {amountEntry(h.MinChange * 100)},
	}
	for _, kind := range h.Events {
		entries.Add("event", string(kind))
	}
	if a := h.Alert; a != nil {
		entries.Set("alertChange", amountEntry(a.Change*100))
		entries.Set("alertHours", text(a.Hours))
		entries.Set("alertAbove", amountEntry(a.Above))
		entries.Set("alertBelow", amountEntry(a.Below))
	}
	return entries
}

// amountEntry returns a price or percentage, or "" for zero.
func amountEntry(m money.Micro) string {
	if m == 0 {
		return ""
	}
	return m.String()
}

func (s *systemPages) webhooks(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.showWebhooks(w, r, sess, form{})
}

// showWebhooks shows the list, and the form of a new webhook with the given entries.
func (s *systemPages) showWebhooks(w http.ResponseWriter, r *http.Request, sess session, entered form) error {
	found, err := s.Webhooks.List(r.Context())
	if err != nil {
		return err
	}
	page := webhooksPage{
		frame: s.frame("Webhooks", "webhooks", &sess), Form: webhookForm{form: entered, Kinds: webhook.Kinds(), Formats: webhook.Formats()},
		API: apiCall{Method: http.MethodGet, Path: "/api/webhooks"},
	}
	for i := range found {
		page.Webhooks = append(page.Webhooks, view.WebhookOf(&found[i]))
	}
	return s.showForm(w, r, entered, "webhooks", page)
}

// webhookPage shows a webhook and its deliveries.
type webhookPage struct {
	frame
	Form       webhookForm
	Deliveries []view.WebhookDelivery
	List       listState
	API        apiCall
}

func (s *systemPages) webhook(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.showWebhook(w, r, sess, form{})
}

// showWebhook shows the webhook in the path. The form has the given entries, or the stored settings if
// there are none.
func (s *systemPages) showWebhook(w http.ResponseWriter, r *http.Request, sess session, entered form) error {
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	before, err := view.WebhookCursor(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	found, err := s.Webhooks.Get(r.Context(), id)
	if err != nil {
		return err
	}
	deliveries, err := s.Webhooks.Deliveries(r.Context(), id, before, deliveriesPerPage+1)
	if err != nil {
		return err
	}
	list := view.WebhookDeliveriesOf(deliveries, deliveriesPerPage)
	shown := webhookForm{form: entered, Webhook: view.WebhookOf(&found), Kinds: webhook.Kinds()}
	if shown.Entries == nil {
		shown.Entries = webhookEntries(&shown.Webhook)
	}
	return s.showForm(w, r, entered, "webhook", webhookPage{
		frame: s.frame("Webhook "+text(id), "webhooks", &sess), Form: shown,
		Deliveries: list.Items, List: listOf(r).until(list.NextCursor),
		API: apiCall{Method: http.MethodGet, Path: "/api/webhooks/" + text(id) + "/deliveries"},
	})
}

// webhookID returns the ID of the webhook in the path.
func webhookID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, fault.New(fault.NotFound, "webhook_not_found", "There is no such webhook.")
	}
	return id, nil
}

func (s *systemPages) createWebhook(w http.ResponseWriter, r *http.Request, sess session) error {
	made, err := newWebhook(r)
	var id int64
	var secret string
	if err == nil {
		id, secret, err = s.Webhooks.Create(r.Context(), made)
	}
	if refused := fault.Of(fieldText(err)); refused != nil {
		return s.showWebhooks(w, r, sess, refusedForm(r, refused))
	}
	return s.done(w, r, sess, flash{
		Good: true, Text: "Webhook " + text(id) + " is created. This is its secret. Copy it now: it is not shown again.",
		Secret: secret, Href: "/webhooks/" + text(id), Link: "Send a test",
	}, err)
}

// newWebhook reads the form of a new webhook.
func newWebhook(r *http.Request) (webhook.Webhook, error) {
	change, err := webhookChange(r)
	if err != nil {
		return webhook.Webhook{}, err
	}
	format := webhook.Format(r.PostFormValue("format"))
	if !slices.Contains(webhook.Formats(), format) {
		return webhook.Webhook{}, fault.New(fault.Invalid, "invalid_parameters", "Choose one of the formats.")
	}
	made := webhook.Webhook{URL: *change.URL, Format: format}
	change.Apply(&made)
	return made, nil
}

func (s *systemPages) changeWebhook(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	change, err := webhookChange(r)
	if err == nil {
		err = s.Webhooks.Update(r.Context(), id, change)
	}
	if refused := fault.Of(fieldText(err)); refused != nil {
		return s.showWebhook(w, r, sess, refusedForm(r, refused))
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The webhook is saved."}, err)
}

// onWebhook calls do with the ID of the webhook in the path and shows the message that do returns.
func (s *systemPages) onWebhook(w http.ResponseWriter, r *http.Request, sess session, do func(id int64) (flash, error)) error {
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	message, err := do(id)
	return s.done(w, r, sess, message, err)
}

// enableWebhook returns the handler that enables or disables a webhook.
func (s *systemPages) enableWebhook(enabled bool) sessionHandler {
	message := "The webhook is disabled. It gets no messages until you enable it."
	if enabled {
		message = "The webhook is enabled. It gets the stored events since its last message."
	}
	return func(w http.ResponseWriter, r *http.Request, sess session) error {
		return s.onWebhook(w, r, sess, func(id int64) (flash, error) {
			return flash{Good: true, Text: message}, s.Webhooks.Update(r.Context(), id, webhook.Change{Enabled: &enabled})
		})
	}
}

func (s *systemPages) rotateWebhook(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onWebhook(w, r, sess, func(id int64) (flash, error) {
		secret, err := s.Webhooks.Rotate(r.Context(), id, rotationTime)
		return flash{
			Good: true, Secret: secret,
			Text: "This is the new secret. Copy it now: it is not shown again. For 24 hours, messages are signed with both secrets.",
		}, err
	})
}

func (s *systemPages) deleteWebhook(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	if ok, err := s.confirmed(w, r, sess, confirmation{
		Question: "Delete webhook " + text(id) + "?", Text: "It gets no further messages, and the list of its deliveries is deleted.",
		Button: "Delete webhook", Danger: true,
	}); !ok {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Webhook " + text(id) + " is deleted."}, s.Webhooks.Delete(r.Context(), id))
}

func (s *systemPages) testWebhook(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onWebhook(w, r, sess, func(id int64) (flash, error) {
		out, err := s.Webhooks.Test(r.Context(), id)
		return sent("The test message", out), err
	})
}

func (s *systemPages) resendDelivery(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onWebhook(w, r, sess, func(id int64) (flash, error) {
		number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
		if err != nil {
			return flash{}, fault.New(fault.NotFound, "delivery_not_found", "This webhook has no such delivery.")
		}
		out, err := s.Webhooks.Resend(r.Context(), id, number)
		return sent("Message "+text(number), out), err
	})
}

// sent returns the message about the outcome of a delivery.
func sent(what string, out webhook.Outcome) flash {
	if out.Error != "" {
		return flash{Text: what + " was not accepted: " + sentence(out.Error)}
	}
	return flash{Good: true, Text: what + " was accepted in " + humanDuration(out.Duration) + " (status " + strconv.Itoa(out.Status) + ")."}
}

// webhookChange reads the form of a webhook.
func webhookChange(r *http.Request) (webhook.Change, error) {
	kinds := []event.Kind{}
	for _, kind := range r.PostForm["event"] {
		if !slices.Contains(webhook.Kinds(), event.Kind(kind)) {
			return webhook.Change{}, fault.New(fault.Invalid, "invalid_parameters", "Choose events from the list.")
		}
		kinds = append(kinds, event.Kind(kind))
	}
	items, err := lines(r.PostFormValue("items"), webhook.MaxItems, catalog.MaxName, "item names")
	if err != nil {
		return webhook.Change{}, err
	}
	owners, err := lines(r.PostFormValue("users"), webhook.MaxUsers, users.MaxID, "users")
	if err != nil {
		return webhook.Change{}, err
	}
	least, err := percentOf(r.PostFormValue("minChange"))
	if err != nil {
		return webhook.Change{}, err
	}
	alert, err := alertOf(r)
	if err != nil {
		return webhook.Change{}, err
	}
	if filter := (webhook.Filter{Events: kinds, Alert: alert}); filter.Check() != nil {
		text := "Enter a limit for price.alert."
		if alert != nil {
			text = "With a limit for alerts, choose price.alert and not price.changed, which alerts replace."
		}
		return webhook.Change{}, fault.New(fault.Invalid, "invalid_parameters", "%s", text)
	}
	address := strings.TrimSpace(r.PostFormValue("url"))
	if address == "" || len(address) > webhook.MaxURL {
		return webhook.Change{}, fault.New(fault.Invalid, "invalid_parameters", "Enter an address of at most %d characters.", webhook.MaxURL)
	}
	return webhook.Change{URL: &address, Events: &kinds, Items: &items, Users: &owners, MinChange: &least, Alert: &alert}, nil
}

// lines returns the non-empty lines of a text field, without the line ends of the browser.
func lines(field string, most, longest int, what string) ([]string, error) {
	list := []string{}
	for line := range strings.SplitSeq(field, "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			list = append(list, line)
		}
	}
	if len(list) > most || slices.ContainsFunc(list, func(line string) bool { return len(line) > longest }) {
		return nil, fault.New(fault.Invalid, "invalid_parameters", "Enter one per line: at most %d %s, each of at most %d bytes.", most, what, longest)
	}
	return list, nil
}

// percentOf returns a percentage as a share: "10" is 0.1. An empty text is 0.
func percentOf(field string) (money.Micro, error) {
	if field == "" {
		return 0, nil
	}
	percent, err := money.Parse([]byte(field), 1)
	if err != nil || len(field) > 32 || percent < 0 || percent > maxHookChange*money.Scale {
		return 0, fault.New(fault.Invalid, "invalid_parameters", "A change must be a percentage from 0 to %d.", maxHookChange)
	}
	return percent / 100, nil
}

// alertOf reads the limits of alerts. It returns nil if the form has none.
func alertOf(r *http.Request) (*webhook.Alert, error) {
	change, err := percentOf(r.PostFormValue("alertChange"))
	if err != nil {
		return nil, err
	}
	a := webhook.Alert{Change: change, Hours: int64(24 * time.Hour / time.Hour)}
	if hours := r.PostFormValue("alertHours"); hours != "" {
		n, err := optionalNumber(hours, webhook.MaxAlertHours)
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_parameters", "The hours must be a whole number from 1 to %d.", webhook.MaxAlertHours)
		}
		a.Hours = int64(n)
	}
	for name, limit := range map[string]*money.Micro{"alertAbove": &a.Above, "alertBelow": &a.Below} {
		if field := r.PostFormValue(name); field != "" {
			if *limit, err = money.Parse([]byte(field), 1); err != nil || len(field) > 32 || *limit <= 0 {
				return nil, fault.New(fault.Invalid, "invalid_parameters", "A price must be a decimal number above 0, such as 12.5.")
			}
		}
	}
	if a.Change == 0 && a.Above == 0 && a.Below == 0 {
		return nil, nil //nolint:nilnil // a form without an alert is valid
	}
	return &a, nil
}

// fieldText turns a fault of one field into a sentence that a page can show.
func fieldText(err error) error {
	f := fault.Of(err)
	if f == nil || len(f.Fields) != 1 {
		return err
	}
	return fault.New(f.Kind, f.Code, "The %s %s.", strings.TrimPrefix(f.Fields[0].Pointer, "/"), f.Fields[0].Detail)
}
