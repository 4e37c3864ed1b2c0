package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/apikey"
	"assay/internal/config"
	"assay/internal/view"
)

// keysCmd contains the commands for API keys.
type keysCmd struct {
	List   keysListCmd   `cmd:"" default:"withargs" help:"List API keys."`
	Create keysCreateCmd `cmd:"" help:"Create an API key and print its secret, once."`
	Rotate keysRotateCmd `cmd:"" help:"Give an API key a new secret and print it, once."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke an API key. Its secrets are invalid at once."`
}

func keysRequest(method, path string) request {
	return request{method: method, path: "/api/keys" + path, query: url.Values{}, as: config.RoleAdmin}
}

// keysListCmd lists API keys.
type keysListCmd struct{ listFlags }

func (*keysListCmd) examples() []example {
	return []example{{"keys list", "list API keys with their scopes, limits and expiry"}}
}

func (c *keysListCmd) Run(ctx context.Context, s *session) error {
	header := []string{"KEY", "SCOPES", "PER MINUTE", "CREATED", "ROTATED", "EXPIRES"}
	return showList(ctx, s, c.listFlags, keysRequest("", ""), header, func(k *view.APIKey) []string {
		limit := "no limit"
		if k.RequestsPerMinute != nil {
			limit = strconv.Itoa(*k.RequestsPerMinute)
		}
		return []string{cell(k.Name), strings.Join(k.Scopes, " "), limit, moment(&k.CreatedAt), momentOrDash(k.RotatedAt), momentOrDash(k.ExpiresAt)}
	})
}

// keysCreateCmd creates an API key.
type keysCreateCmd struct {
	Name      string        `arg:"" help:"Name: lower-case letters, digits and hyphens."`
	Scope     []string      `required:"" placeholder:"SCOPE" help:"Scope, such as prices:read or wallet:write. Separate several by commas. Write includes read."`
	PerMinute int           `placeholder:"N" help:"Limit of requests per minute and instance. Default: no limit."`
	ExpiresIn time.Duration `placeholder:"TIME" help:"The key expires after this time, such as 720h. Default: it does not expire."`
}

func (*keysCreateCmd) examples() []example {
	return []example{
		{"keys create shop --scope prices:read --per-minute 600", "create a key that reads prices, at most 600 times a minute"},
		{"keys create bot --scope inventory:write,market:read --expires-in 720h --json", "create a key for 30 days and print it as JSON"},
	}
}

// keyBody is the body of a request for a new key.
type keyBody struct {
	Name              string     `json:"name"`
	Scopes            []string   `json:"scopes"`
	RequestsPerMinute int        `json:"requestsPerMinute,omitzero"`
	ExpiresAt         *time.Time `json:"expiresAt,omitzero"`
}

func (c *keysCreateCmd) Run(ctx context.Context, s *session) error {
	for _, scope := range c.Scope {
		if !slices.Contains(apikey.Scopes(), scope) {
			return &usageError{text: fmt.Sprintf("unknown scope %q; the scopes are %s", scope, strings.Join(apikey.Scopes(), ", "))}
		}
	}
	switch {
	case c.PerMinute < 0 || c.PerMinute > apikey.MaxPerMinute:
		return &usageError{text: fmt.Sprintf("--per-minute must be 1 to %d", apikey.MaxPerMinute)}
	case c.ExpiresIn < 0:
		return &usageError{text: "--expires-in must not be negative"}
	}
	r := keysRequest(http.MethodPost, "")
	body := keyBody{Name: c.Name, Scopes: c.Scope, RequestsPerMinute: c.PerMinute}
	if c.ExpiresIn > 0 {
		expires := s.Now().Add(c.ExpiresIn).UTC()
		body.ExpiresAt = &expires
	}
	r.body = body
	return show(ctx, s, r, writeNewKey)
}

// keysRotateCmd replaces the secret of an API key.
type keysRotateCmd struct {
	Name      string `arg:"" help:"Name of the key."`
	KeepHours int    `default:"24" help:"Hours for which the old secret stays valid, 0 to 720."`
}

func (*keysRotateCmd) examples() []example {
	return []example{
		{"keys rotate shop", "print a new secret; the old one stays valid for 24 hours"},
		{"keys rotate shop --keep-hours 0", "replace a leaked secret at once"},
	}
}

func (c *keysRotateCmd) Run(ctx context.Context, s *session) error {
	r := keysRequest(http.MethodPost, "/"+segment(c.Name)+"/rotate")
	r.query.Set("keepHours", strconv.Itoa(c.KeepHours))
	return show(ctx, s, r, writeNewKey)
}

// writeNewKey prints the secret alone on the first line, so that scripts can read it.
func writeNewKey(w io.Writer, k *view.NewAPIKey) {
	_, _ = fmt.Fprintf(w, "%s\n\nThis is the secret of the key %s. It is not shown again. Send it as Authorization: Bearer SECRET.\n", printable(k.Secret), cell(k.Name))
	if k.OldSecretUntil != nil {
		_, _ = fmt.Fprintf(w, "The old secret is valid until %s.\n", moment(k.OldSecretUntil))
	}
}

// keysRevokeCmd revokes an API key.
type keysRevokeCmd struct {
	Name string `arg:"" help:"Name of the key."`
}

func (*keysRevokeCmd) examples() []example {
	return []example{{"keys revoke shop", "make the secrets of shop invalid at once"}}
}

func (c *keysRevokeCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	if err := api.do(ctx, keysRequest(http.MethodDelete, "/"+segment(c.Name)), nil); err != nil {
		return err
	}
	return s.out.result(map[string]any{"name": c.Name, "revoked": true}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "the key %s is revoked\n", printable(c.Name))
	})
}

// auditCmd lists the audit log.
type auditCmd struct {
	Actor string `placeholder:"ACTOR" help:"Only entries of this actor: admin, market, platform, page, operator:NAME, or key:NAME."`
	listFlags
}

func (*auditCmd) examples() []example {
	return []example{
		{"audit", "list the last 20 requests that changed something"},
		{"audit --actor key:shop --limit 1000 --json", "print the last 1000 changes by the key shop as JSON"},
	}
}

func (c *auditCmd) Run(ctx context.Context, s *session) error {
	r := request{path: "/api/audit", query: filter("actor", c.Actor), as: config.RoleAdmin}
	return showList(ctx, s, c.listFlags, r, []string{"TIME", "ACTOR", "ADDRESS", "ACTION", "TARGET", "REQUEST"}, func(e *view.AuditEntry) []string {
		return []string{moment(&e.At), cell(e.Actor), cell(e.Address), cell(e.Action), cell(e.Target), cell(e.RequestID)}
	})
}
