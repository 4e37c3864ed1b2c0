// Package webhook sends events to addresses that operators register. Each webhook stores a
// cursor, the number of the last event that was handled. A receiver that was down therefore gets
// the missed events in order. A message may arrive more than once, always with the same id.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/provider"
)

// Format is the form of a message.
type Format string

// The formats.
const (
	Standard Format = "standard" // the JSON of Standard Webhooks
	Slack    Format = "slack"    // a text for an incoming webhook of Slack
	Discord  Format = "discord"  // a text for a webhook of Discord
)

// Formats returns all formats.
func Formats() []Format { return []Format{Standard, Slack, Discord} }

// Reasons why a webhook is disabled.
const (
	ByOperator = "operator"
	Gone       = "gone"    // the receiver responded with status 410
	Failing    = "failing" // all attempts within disableAfter failed
)

// States of a delivery.
const (
	Delivered = "delivered"
	Retrying  = "retrying"
	Failed    = "failed" // abandoned
	Lost      = "lost"   // events were deleted before they could be sent
)

// Limits of webhooks.
const (
	MaxWebhooks = 100
	MaxItems    = 200 // item names in a filter
	MaxUsers    = 20  // users in a filter
	MaxURL      = 2000
)

// TestKind is the kind of the message that Test sends.
const TestKind = "webhook.test"

// Kinds returns the kinds that a Filter can name: those of all events, and AlertKind.
func Kinds() []event.Kind { return append(event.Kinds(), AlertKind) }

// Filter selects events. An empty list selects all. AlertKind in Events needs an Alert.
type Filter struct {
	Events    []event.Kind `json:"events"`
	Items     []string     `json:"items"`          // market hash names; applies to events that name items
	Users     []string     `json:"users"`          // applies to events of these users, and to prices of items in their inventories
	Alert     *Alert       `json:"alert,omitzero"` // nil: all price changes
	MinChange money.Micro  `json:"minChange"`      // minimum move of a price, as a fraction of the previous price; 0.1 is 10 %
}

// Webhook is an address that events are sent to.
type Webhook struct {
	ID             int64
	URL            string
	Format         Format
	Filter         Filter
	Disabled       string // the reason; empty: enabled
	Cursor         int64  // number of the last event that was handled
	Attempts       int    // failed attempts since the last success
	FailingSince   time.Time
	NextAt         time.Time // time of the next attempt; zero: at the next event
	TriedAt        time.Time
	DeliveredAt    time.Time
	LastError      string
	OldSecretUntil time.Time
	CreatedAt      time.Time

	secret, oldSecret string
	token, revision   int64
}

// States of a webhook.
const (
	IsHealthy  = "healthy"
	IsFailing  = "failing" // the last attempt failed
	IsDisabled = "disabled"
)

// State returns the state of the webhook.
func (h *Webhook) State() string {
	switch {
	case h.Disabled != "":
		return IsDisabled
	case h.Attempts > 0:
		return IsFailing
	default:
		return IsHealthy
	}
}

// Delivery is a recent message of a webhook.
type Delivery struct {
	Number   int64      // of the event, or of the last price change in the message
	First    int64      // of the first price change in the message
	Kind     event.Kind // of the message: AlertKind for alerts; empty if Lost
	State    string
	Attempts int
	Outcome
	At time.Time // of the last attempt
}

// Outcome is the result of an attempt.
type Outcome struct {
	Status   int // HTTP status; 0: no response
	Duration time.Duration
	Error    string // empty: the receiver accepted the message

	retryAfter time.Duration
}

// Options configure a Service.
type Options struct {
	Store *db.DB
	Feed  *event.Feed
	// Changes returns the data of price changes for clients. It leaves out items with id 0.
	Changes  func(context.Context, *event.Batch) (json.RawMessage, error)
	Dialer   *provider.Dialer
	Currency string        // of prices in texts
	Owner    string        // name of this process in claims
	Timeout  time.Duration // of one attempt; default 10 s
	Logger   *slog.Logger
}

// Service manages webhooks and sends messages.
type Service struct {
	o      Options
	client *http.Client
	wake   chan struct{}

	mu      sync.Mutex
	running map[int64]bool // webhooks with a session in this process
}

// New returns the service of a database.
func New(o Options) *Service {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Service{o: o, client: newClient(o), wake: make(chan struct{}, 1), running: map[int64]bool{}}
}

// notFound returns the error for an unknown webhook.
func notFound() error {
	return fault.New(fault.NotFound, "webhook_not_found", "There is no such webhook.")
}

// CheckURL returns a fault if messages cannot be sent to an address.
func (s *Service) CheckURL(address string) error {
	u, err := url.Parse(address)
	var detail string
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		detail = "must be an absolute https URL"
	case u.User != nil || u.Fragment != "":
		detail = "must have no user name and no fragment"
	case s.o.Dialer.Allows(provider.HostPort(u)):
		return nil
	case u.Scheme == "http":
		detail = "must begin with https, because WEBHOOK_ALLOW_HOSTS does not name its host"
	case !public(u.Hostname()):
		detail = "must have a public address, because WEBHOOK_ALLOW_HOSTS does not name it"
	default:
		return nil
	}
	return invalid("/url", detail)
}

func invalid(pointer, detail string) error {
	f := fault.New(fault.Invalid, "invalid_body", "The body has a fault; see errors.")
	f.Fields = []fault.Field{{Pointer: pointer, Detail: detail}}
	return f
}

// public reports whether a host may have a public address. Other names are checked when they are
// resolved. A name that ends in a number is refused, because some systems read it as an IPv4 address.
func public(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return !provider.Guarded(addr)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if hex, found := strings.CutPrefix(last, "0x"); found {
		last, digits = hex, "0123456789abcdef"
	}
	return last != "localhost" && strings.Trim(last, digits) != ""
}

// Check returns a fault if Events and Alert contradict each other. With an Alert, the webhook sends
// alerts instead of price changes.
func (f *Filter) Check() error {
	alerts := slices.Contains(f.Events, AlertKind)
	switch {
	case f.Alert == nil && alerts:
		return invalid("/alert", "is required, because events has "+string(AlertKind))
	case f.Alert != nil && len(f.Events) > 0 && !alerts:
		return invalid("/events", "must have "+string(AlertKind)+", because alert is set")
	case f.Alert != nil && slices.Contains(f.Events, event.PriceChanged):
		return invalid("/events", "must not have "+string(event.PriceChanged)+", because alert replaces it: create another webhook for it")
	}
	return nil
}

// Create stores a webhook. The webhook gets only events that are written afterwards. The
// secret signs its messages and is not shown again.
func (s *Service) Create(ctx context.Context, h Webhook) (id int64, secret string, err error) {
	if err := errors.Join(s.CheckURL(h.URL), h.Filter.Check()); err != nil {
		return 0, "", err
	}
	if err := s.o.Feed.Number(ctx); err != nil { // number all earlier events, so that the new cursor is after them
		return 0, "", err
	}
	h.secret = newSecret()
	err = s.o.Store.InTx(ctx, func(t *db.Tx) error {
		id, err = insert(t, h)
		return err
	})
	return id, h.secret, err
}

// Change is a change of a webhook. A nil field leaves the value unchanged.
type Change struct {
	URL       *string
	Events    *[]event.Kind
	Items     *[]string
	Users     *[]string
	MinChange *money.Micro
	Alert     **Alert
	Enabled   *bool
}

// Update changes a webhook. A failing webhook is retried immediately.
func (s *Service) Update(ctx context.Context, id int64, c Change) error {
	if c.URL != nil {
		if err := s.CheckURL(*c.URL); err != nil {
			return err
		}
	}
	defer s.Wake()
	return s.o.Store.InTx(ctx, func(t *db.Tx) error {
		h, err := lock(t, id)
		if err != nil {
			return err
		}
		c.Apply(h)
		if err := h.Filter.Check(); err != nil {
			return err
		}
		switch {
		case c.Enabled == nil:
		case *c.Enabled:
			h.Disabled = ""
		case h.Disabled == "":
			h.Disabled = ByOperator
		}
		return update(t, h)
	})
}

// Apply changes the address and the filter of a webhook in memory.
func (c *Change) Apply(h *Webhook) {
	set(&h.URL, c.URL)
	set(&h.Filter.Events, c.Events)
	set(&h.Filter.Items, c.Items)
	set(&h.Filter.Users, c.Users)
	set(&h.Filter.MinChange, c.MinChange)
	set(&h.Filter.Alert, c.Alert)
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// Rotate replaces the secret of a webhook. For the time keep, messages are also signed with
// the previous secret.
func (s *Service) Rotate(ctx context.Context, id int64, keep time.Duration) (secret string, err error) {
	secret = newSecret()
	return secret, s.o.Store.InTx(ctx, func(t *db.Tx) error {
		h, err := lock(t, id)
		if err != nil {
			return err
		}
		h.oldSecret, h.secret, h.OldSecretUntil = h.secret, secret, t.Now().Add(keep)
		return update(t, h)
	})
}

// Delete deletes a webhook and its deliveries.
func (s *Service) Delete(ctx context.Context, id int64) error {
	return s.o.Store.InTx(ctx, func(t *db.Tx) error { return remove(t, id) })
}

// Get returns a webhook.
func (s *Service) Get(ctx context.Context, id int64) (Webhook, error) {
	h, err := find(ctx, s.o.Store.Read, id)
	if err == nil && h == nil {
		err = notFound()
	}
	if err != nil {
		return Webhook{}, err
	}
	return *h, nil
}

// List returns all webhooks by id.
func (s *Service) List(ctx context.Context) ([]Webhook, error) { return list(ctx, s.o.Store) }

// Deliveries returns up to limit messages with a number below before, newest first.
func (s *Service) Deliveries(ctx context.Context, id, before int64, limit int) ([]Delivery, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	return deliveries(ctx, s.o.Store, id, before, limit)
}

// Test sends a message of the kind TestKind, even to a disabled webhook.
func (s *Service) Test(ctx context.Context, id int64) (Outcome, error) {
	h, err := s.Get(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	now := s.o.Store.Clock()
	m := message{
		id: fmt.Sprintf("msg_%d_test_%d", id, now.UnixMicro()), kind: TestKind, at: now,
		data: fmt.Appendf(nil, `{"webhookId":"%d"}`, id), text: "This is a test message of Assay.",
	}
	out := s.send(ctx, &h, &m)
	return out, s.o.Store.InTx(ctx, func(*db.Tx) error { return nil }) // the audit log adds its entry
}

// Resend sends a recent message again with the same id, even to a disabled webhook. It
// leaves out price changes that the current filter excludes. If the receiver accepts a message
// that is still retried, it counts as delivered.
func (s *Service) Resend(ctx context.Context, id, number int64) (Outcome, error) {
	h, err := s.Get(ctx, id)
	if err != nil {
		return Outcome{}, err
	}
	d, err := findDelivery(ctx, s.o.Store, id, number)
	switch {
	case err != nil:
		return Outcome{}, err
	case d == nil || d.State == Lost:
		return Outcome{}, fault.New(fault.NotFound, "delivery_not_found", "This webhook has no such delivery.")
	}
	events, lost, err := event.Resume(ctx, s.o.Store.Read, d.First-1, 1)
	if err != nil {
		return Outcome{}, err
	}
	if lost > 0 || len(events) == 0 || !covers(&events[0], d) {
		return Outcome{}, fault.New(fault.NotFound, "event_not_found", "The event of this delivery is no longer stored.")
	}
	part := split(&events[0])[0]
	m, err := s.message(ctx, &h, &part, nil)
	if err != nil {
		return Outcome{}, err
	}
	if m == nil {
		return Outcome{}, fault.New(fault.Conflict, "event_filtered", "The filter of this webhook no longer selects this event. Change the filter, then resend it.")
	}
	out := s.send(ctx, &h, m)
	if err := s.o.Store.InTx(ctx, func(t *db.Tx) error { return recordResent(t, id, number, out) }); err != nil {
		return out, err
	}
	s.Wake()
	return out, nil
}

// covers reports whether a delivery begins with the first change of an event.
func covers(e *event.Numbered, d *Delivery) bool {
	if e.Batch != nil {
		return e.Batch.First() == d.First
	}
	return e.Number == d.First
}

// Wake makes Run look for work.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}
