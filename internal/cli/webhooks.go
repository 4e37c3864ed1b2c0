package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"assay/internal/config"
	"assay/internal/money"
	"assay/internal/view"
)

// webhooksCmd contains the commands for webhooks.
type webhooksCmd struct {
	List       webhooksListCmd       `cmd:"" default:"withargs" help:"List webhooks and their health."`
	Create     webhooksCreateCmd     `cmd:"" help:"Send events to an address from now on, and print the secret, once."`
	Enable     webhooksEnableCmd     `cmd:"" help:"Continue a disabled webhook after the last event that it handled."`
	Disable    webhooksDisableCmd    `cmd:"" help:"Send no more events to an address."`
	Test       webhooksTestCmd       `cmd:"" help:"Send a test message and show the outcome."`
	Rotate     webhooksRotateCmd     `cmd:"" help:"Replace the secret and print it, once."`
	Deliveries webhooksDeliveriesCmd `cmd:"" help:"List recent messages."`
	Resend     webhooksResendCmd     `cmd:"" help:"Send a recent message again and show the outcome."`
	Delete     webhooksDeleteCmd     `cmd:"" help:"Delete a webhook and its deliveries."`
}

func webhooksRequest(method, path string) request {
	return request{method: method, path: "/api/webhooks" + path, query: filter(), as: config.RoleAdmin}
}

// webhookArg is the argument of the commands for one webhook.
type webhookArg struct {
	ID string `arg:"" help:"Id of the webhook."`
}

func (a webhookArg) request(method, path string) request {
	return webhooksRequest(method, "/"+segment(a.ID)+path)
}

// webhooksListCmd lists webhooks.
type webhooksListCmd struct{}

func (*webhooksListCmd) examples() []example {
	return []example{{"webhooks list", "list webhooks with their health and last error"}}
}

func (c *webhooksListCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, webhooksRequest("", ""), func(w io.Writer, page *view.Page[view.Webhook]) {
		rows := [][]string{{"WEBHOOK", "URL", "FORMAT", "EVENTS", "STATE", "LAST SUCCESS", "NEXT ATTEMPT", "LAST ERROR"}}
		for i := range page.Items {
			h := &page.Items[i]
			events, fault := "all", "-"
			if len(h.Events) > 0 {
				events = ""
				for _, kind := range h.Events {
					events += " " + string(kind)
				}
			}
			if h.LastError != nil {
				fault = cell(*h.LastError)
			}
			rows = append(rows, []string{h.ID, cell(h.URL), h.Format, strings.TrimSpace(events), h.State, momentOrDash(h.LastSuccess), momentOrDash(h.NextAttemptAt), fault})
		}
		table(w, rows)
	})
}

// webhooksCreateCmd creates a webhook.
type webhooksCreateCmd struct {
	URL       string      `arg:"" help:"Address, beginning with https. Hosts in WEBHOOK_ALLOW_HOSTS may use http."`
	Event     []string    `placeholder:"KIND" help:"Send these kinds of events, such as price.changed,job.failed. Default: all."`
	Item      []string    `sep:"none" placeholder:"NAME" help:"Send events of this item. Repeat the flag for several items."`
	User      []string    `placeholder:"ID" help:"Send events of these users, and prices of their items."`
	MinChange money.Micro `placeholder:"PART" help:"Send prices that changed by at least this share: 0.05 is 5 %."`
	alertFlags
	Format string `enum:"standard,slack,discord" default:"standard" help:"standard (signed JSON), slack or discord."`
}

// alertFlags are the limits of price alerts.
type alertFlags struct {
	AlertChange money.Micro `placeholder:"PART" help:"Send price.alert instead of price.changed, once a price moves by this share within --alert-hours: 0.1 is 10 %."`
	AlertHours  int64       `placeholder:"HOURS" help:"Window of --alert-change, 1 to 720. Default: 24."`
	AlertAbove  money.Micro `placeholder:"PRICE" help:"Send price.alert instead of price.changed, once a price rises to this price or more."`
	AlertBelow  money.Micro `placeholder:"PRICE" help:"Send price.alert instead of price.changed, once a price falls to this price or less."`
}

// alertBody contains the limits of price alerts in a request.
type alertBody struct {
	Change money.Micro `json:"change,omitzero"`
	Hours  int64       `json:"hours,omitzero"`
	Above  money.Micro `json:"above,omitzero"`
	Below  money.Micro `json:"below,omitzero"`
}

// body returns the limits, or nil if no flag is set.
func (f *alertFlags) body() *alertBody {
	if *f == (alertFlags{}) {
		return nil
	}
	return &alertBody{f.AlertChange, f.AlertHours, f.AlertAbove, f.AlertBelow}
}

func (*webhooksCreateCmd) examples() []example {
	return []example{
		{"webhooks create https://shop.example/hooks/assay --event price.changed --min-change 0.05", "send prices that moved by 5 % or more"},
		{"webhooks create https://shop.example/hooks/alerts --event price.alert --alert-change 0.1 --alert-hours 24", "send an alert when a price moves by 10 % within a day"},
		{`webhooks create https://shop.example/hooks/alerts --event price.alert --item "AK-47 | Redline (Field-Tested)" --alert-above 60 --alert-below 40`, "send an alert when the price of an item rises to 60 or falls to 40"},
		{"webhooks create https://hooks.slack.com/services/T/B/X --format slack --event job.failed,provider.down", "send failures to a channel of Slack"},
	}
}

// webhookBody is the body of a request for a new webhook.
type webhookBody struct {
	URL       string      `json:"url"`
	Format    string      `json:"format"`
	Events    []string    `json:"events,omitempty"`
	Items     []string    `json:"items,omitempty"`
	Users     []string    `json:"users,omitempty"`
	MinChange money.Micro `json:"minChange,omitzero"`
	Alert     *alertBody  `json:"alert,omitempty"`
}

func (c *webhooksCreateCmd) Run(ctx context.Context, s *session) error {
	r := webhooksRequest(http.MethodPost, "")
	r.body = webhookBody{c.URL, c.Format, c.Event, c.Item, c.User, c.MinChange, c.body()}
	return show(ctx, s, r, writeNewWebhook)
}

// writeNewWebhook prints the secret alone on the first line, so that scripts can read it.
func writeNewWebhook(w io.Writer, h *view.NewWebhook) {
	_, _ = fmt.Fprintf(w, "%s\n\nThis is the secret of webhook %s. Use it to verify messages. It is not shown again.\n", printable(h.Secret), h.ID)
	if h.OldSecretUntil != nil {
		_, _ = fmt.Fprintf(w, "Messages also carry a signature with the old secret until %s.\n", moment(h.OldSecretUntil))
	}
}

// webhooksEnableCmd enables a webhook.
type webhooksEnableCmd struct{ webhookArg }

func (*webhooksEnableCmd) examples() []example {
	return []example{{"webhooks enable 1", "continue after the last event that was handled"}}
}

func (c *webhooksEnableCmd) Run(ctx context.Context, s *session) error {
	return c.enable(ctx, s, true)
}

// webhooksDisableCmd disables a webhook.
type webhooksDisableCmd struct{ webhookArg }

func (*webhooksDisableCmd) examples() []example {
	return []example{{"webhooks disable 1", "stop sending until it is enabled"}}
}

func (c *webhooksDisableCmd) Run(ctx context.Context, s *session) error {
	return c.enable(ctx, s, false)
}

func (a webhookArg) enable(ctx context.Context, s *session, enabled bool) error {
	r := a.request(http.MethodPatch, "")
	r.body = map[string]any{"enabled": enabled}
	return show(ctx, s, r, func(w io.Writer, h *view.Webhook) {
		_, _ = fmt.Fprintf(w, "webhook %s is %s\n", h.ID, h.State)
	})
}

// webhooksTestCmd sends a test message.
type webhooksTestCmd struct{ webhookArg }

func (*webhooksTestCmd) examples() []example {
	return []example{{"webhooks test 1", "send a message of the type webhook.test"}}
}

func (c *webhooksTestCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, c.request(http.MethodPost, "/test"), writeAttempt)
}

func writeAttempt(w io.Writer, a *view.WebhookAttempt) {
	outcome := "delivered"
	if !a.Delivered {
		outcome = "not delivered"
	}
	if a.Status > 0 {
		outcome += fmt.Sprintf(" with status %d", a.Status)
	}
	if a.Error != nil {
		outcome += ": " + printable(*a.Error)
	}
	_, _ = fmt.Fprintln(w, outcome)
}

// webhooksRotateCmd replaces the secret of a webhook.
type webhooksRotateCmd struct {
	webhookArg
	KeepHours int `default:"24" help:"Hours for which messages also carry a signature with the old secret, 0 to 720."`
}

func (*webhooksRotateCmd) examples() []example {
	return []example{{"webhooks rotate 1", "print a new secret; the old one stays valid for 24 hours"}}
}

func (c *webhooksRotateCmd) Run(ctx context.Context, s *session) error {
	r := c.request(http.MethodPost, "/rotate")
	r.query.Set("keepHours", strconv.Itoa(c.KeepHours))
	return show(ctx, s, r, writeNewWebhook)
}

// webhooksDeliveriesCmd lists the messages of a webhook.
type webhooksDeliveriesCmd struct {
	webhookArg
	listFlags
}

func (*webhooksDeliveriesCmd) examples() []example {
	return []example{{"webhooks deliveries 1 --limit 100", "list the last 100 messages with their outcomes"}}
}

func (c *webhooksDeliveriesCmd) Run(ctx context.Context, s *session) error {
	header := []string{"NUMBER", "KIND", "STATE", "ATTEMPTS", "STATUS", "TIME", "ERROR"}
	return showList(ctx, s, c.listFlags, c.request("", "/deliveries"), header, func(d *view.WebhookDelivery) []string {
		fault := "-"
		if d.Error != nil {
			fault = cell(*d.Error)
		}
		return []string{d.Number, d.Kind, d.State, strconv.Itoa(d.Attempts), strconv.Itoa(d.Status), moment(&d.At), fault}
	})
}

// webhooksResendCmd sends a message again.
type webhooksResendCmd struct {
	webhookArg
	Number string `arg:"" help:"Number of the message in the list of deliveries."`
}

func (*webhooksResendCmd) examples() []example {
	return []example{{"webhooks resend 1 1790000000000000", "send the message again, with the same id"}}
}

func (c *webhooksResendCmd) Run(ctx context.Context, s *session) error {
	return show(ctx, s, c.request(http.MethodPost, "/deliveries/"+segment(c.Number)+"/resend"), writeAttempt)
}

// webhooksDeleteCmd deletes a webhook.
type webhooksDeleteCmd struct{ webhookArg }

func (*webhooksDeleteCmd) examples() []example {
	return []example{{"webhooks delete 1", "delete it with its deliveries"}}
}

func (c *webhooksDeleteCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	if err := api.do(ctx, c.request(http.MethodDelete, ""), nil); err != nil {
		return err
	}
	return s.out.result(map[string]any{"id": c.ID, "deleted": true}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "webhook %s is deleted\n", printable(c.ID))
	})
}
