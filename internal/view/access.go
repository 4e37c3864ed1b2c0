package view

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/apikey"
	"assay/internal/auditlog"
	"assay/internal/operator"
)

// APIKey is an API key without its secret.
type APIKey struct {
	Name              string     `json:"name"`
	Scopes            []string   `json:"scopes"`
	RequestsPerMinute *int       `json:"requestsPerMinute"` // null: no limit
	CreatedAt         time.Time  `json:"createdAt"`
	RotatedAt         *time.Time `json:"rotatedAt"`      // null: never
	ExpiresAt         *time.Time `json:"expiresAt"`      // null: never
	OldSecretUntil    *time.Time `json:"oldSecretUntil"` // null: only one secret is valid
}

// NewAPIKey is an API key with its secret, which is shown only once.
type NewAPIKey struct {
	APIKey
	Secret string `json:"secret"`
}

// Operator is a person with a password for the operator's page.
type Operator struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"createdAt"`
	ChangedAt time.Time `json:"changedAt"`
}

// OperatorOf converts an operator to the type that the API returns.
func OperatorOf(o *operator.Operator) Operator {
	return Operator{Name: o.Name, Role: o.Role.String(), Disabled: o.Disabled, CreatedAt: o.CreatedAt, ChangedAt: o.ChangedAt}
}

// AuditEntry is a request that changed something.
type AuditEntry struct {
	At        time.Time `json:"at"`
	Actor     string    `json:"actor"`   // admin, market, platform, page, key:NAME
	Address   string    `json:"address"` // of the client
	Action    string    `json:"action"`  // method and route
	Target    string    `json:"target"`  // path and query, or the path of a new webhook, API key or operator
	RequestID string    `json:"requestId"`
}

// Keys lists API keys by name.
func (r *AccessReader) Keys(ctx context.Context, after string, limit int) (Page[APIKey], error) {
	var name string
	if err := readCursor(after, "keys", &name); err != nil {
		return Page[APIKey]{}, err
	}
	rows, err := apikey.List(ctx, r.o.Store, name, limit+1)
	if err != nil {
		return Page[APIKey]{}, err
	}
	return page(rows, limit, r.keyOf, func(k *apikey.Key) *string { return cursor("keys", k.Name) }), nil
}

// Key returns an API key, or a fault.NotFound.
func (r *AccessReader) Key(ctx context.Context, name string) (APIKey, error) {
	k, err := apikey.Get(ctx, r.o.Store, name)
	return r.keyOf(&k), err
}

// NewKey combines an API key and its secret.
func (r *AccessReader) NewKey(k *apikey.Key, secret string) NewAPIKey {
	return NewAPIKey{r.keyOf(k), secret}
}

func (r *AccessReader) keyOf(k *apikey.Key) APIKey {
	out := APIKey{Name: k.Name, Scopes: k.Scopes, CreatedAt: k.CreatedAt}
	if k.PerMinute > 0 {
		out.RequestsPerMinute = &k.PerMinute
	}
	set := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	out.RotatedAt, out.ExpiresAt = set(k.RotatedAt), set(k.ExpiresAt)
	if k.OldUntil.After(r.o.Now()) {
		out.OldSecretUntil = &k.OldUntil
	}
	return out
}

// Audit lists the audit log, newest first. If actor is not empty, it lists only the entries of
// this actor.
func (r *AccessReader) Audit(ctx context.Context, actor, after string, limit int) (Page[AuditEntry], error) {
	leave, err := r.o.enter(ctx, admission.List)
	if err != nil {
		return Page[AuditEntry]{}, err
	}
	defer leave()
	var before int64
	if err := readCursor(after, "audit", &before); err != nil {
		return Page[AuditEntry]{}, err
	}
	rows, err := auditlog.List(ctx, r.o.Store, actor, before, limit+1)
	if err != nil {
		return Page[AuditEntry]{}, err
	}
	return page(rows, limit, func(e *auditlog.Entry) AuditEntry {
		return AuditEntry{At: e.At, Actor: e.Actor, Address: e.Address, Action: e.Action, Target: e.Target, RequestID: e.RequestID}
	}, func(e *auditlog.Entry) *string { return cursor("audit", e.ID) }), nil
}
