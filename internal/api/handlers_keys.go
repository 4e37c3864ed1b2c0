package api

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"assay/internal/apikey"
	"assay/internal/strictjson"
)

// keyHandlers serve API keys and the audit log.
type keyHandlers struct{ *Deps }

// apiKeyBody describes the body of POST /api/keys. decodeKey decodes it.
type apiKeyBody struct {
	Name              string     `json:"name"`
	Scopes            []string   `json:"scopes"`
	RequestsPerMinute *int       `json:"requestsPerMinute,omitempty"`
	ExpiresAt         *time.Time `json:"expiresAt,omitempty"`
}

func (h keyHandlers) keys(c *call) (any, error) {
	return h.Readers.Access.Keys(c.Context(), c.values["cursor"], c.limit())
}

func (h keyHandlers) key(c *call) (any, error) {
	return h.Readers.Access.Key(c.Context(), c.values["key"])
}

func (h keyHandlers) createKey(c *call) (any, error) {
	k, err := decodeKey(c.Body)
	if err != nil {
		return nil, err
	}
	k, secret, err := h.Keys.Create(c.Context(), c.apiKey, k)
	if err != nil {
		return nil, err
	}
	return response{status: http.StatusCreated, location: "/api/keys/" + k.Name, value: h.Readers.Access.NewKey(&k, secret)}, nil
}

func (h keyHandlers) rotateKey(c *call) (any, error) {
	k, secret, err := h.Keys.Rotate(c.Context(), c.apiKey, c.values["key"], c.keep())
	if err != nil {
		return nil, err
	}
	return h.Readers.Access.NewKey(&k, secret), nil
}

func (h keyHandlers) revokeKey(c *call) (any, error) {
	return response{status: http.StatusNoContent}, h.Keys.Revoke(c.Context(), c.apiKey, c.values["key"])
}

func (h keyHandlers) auditLog(c *call) (any, error) {
	return h.Readers.Access.Audit(c.Context(), c.values["actor"], c.values["cursor"], c.limit())
}

// decodeKey decodes a new key.
func decodeKey(body io.Reader) (k apikey.Key, err error) {
	in := strictjson.NewReader(body)
	var named, scoped bool
	in.Object([]string{"name", "scopes", "requestsPerMinute", "expiresAt"}, func(member string) bool {
		switch member {
		case "name":
			named = true
			name, ok := in.Text(1, apikey.MaxName)
			if k.Name = name; ok && !apikey.ValidName(name) {
				in.Fault("must be lower-case letters, digits and hyphens, and begin with a letter")
			}
		case "scopes":
			scoped = true
			n := 0
			read := in.Array(func(int) {
				n++
				scope, ok := in.Text(1, apikey.MaxName)
				switch {
				case !ok:
				case !slices.Contains(apikey.Scopes(), scope):
					in.Fault("must be one of %s", strings.Join(apikey.Scopes(), ", "))
				case slices.Contains(k.Scopes, scope):
					in.Fault("is listed twice")
				default:
					k.Scopes = append(k.Scopes, scope)
				}
			})
			if read && n == 0 {
				in.FaultAt("/scopes", "must have at least one scope")
			}
		case "requestsPerMinute":
			if !in.Null() {
				n, _ := in.Int(1, apikey.MaxPerMinute)
				k.PerMinute = int(n)
			}
		case "expiresAt":
			if !in.Null() {
				k.ExpiresAt, _ = in.Time()
			}
		default:
			return false
		}
		return true
	})
	in.Require("", "name", named)
	in.Require("", "scopes", scoped)
	return k, in.Finish()
}
