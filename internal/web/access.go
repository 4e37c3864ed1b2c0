package web

import (
	"net/http"
	"strconv"
	"time"

	"assay/internal/apikey"
	"assay/internal/fault"
	"assay/internal/view"
)

const (
	keysPerPage  = 100
	auditPerPage = 50
	// rotationTime is how long the old secret of a rotated key stays valid. API clients choose this time.
	rotationTime = 24 * time.Hour
	maxKeyDays   = 3_650
)

// keysPage lists API keys.
type keysPage struct {
	frame
	Keys   []view.APIKey
	Scopes []string
	Next   string
	First  bool
	Form   form
}

func (s *accessPages) keys(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.showKeys(w, r, sess, form{})
}

// showKeys shows the list, and the form of a new key with the given entries.
func (s *accessPages) showKeys(w http.ResponseWriter, r *http.Request, sess session, entered form) error {
	cursor := r.URL.Query().Get("cursor")
	list, err := s.Access.Keys(r.Context(), cursor, keysPerPage)
	if err != nil {
		return err
	}
	return s.showForm(w, r, entered, "keys", keysPage{
		frame: s.frame("API keys", "keys", &sess), Keys: list.Items, Scopes: apikey.Scopes(),
		Next: nextPage("/keys", list.NextCursor), First: cursor == "", Form: entered,
	})
}

func (s *accessPages) createKey(w http.ResponseWriter, r *http.Request, sess session) error {
	k, err := newKey(r, s.Now())
	var secret string
	if err == nil {
		k, secret, err = s.APIKeys.Create(r.Context(), nil, k)
	}
	if refused := fault.Of(err); refused != nil {
		return s.showKeys(w, r, sess, refusedForm(r, refused))
	}
	return s.done(w, r, sess, newSecret(k.Name, secret, ""), err)
}

// newKey reads the form of a new key.
func newKey(r *http.Request, now time.Time) (apikey.Key, error) {
	k := apikey.Key{Name: r.PostFormValue("name"), Scopes: r.PostForm["scope"]}
	limit, err := optionalNumber(r.PostFormValue("perMinute"), apikey.MaxPerMinute)
	if err != nil {
		return k, fault.New(fault.Invalid, "invalid_parameters", "The requests per minute must be a whole number from 1 to %d, or empty.", apikey.MaxPerMinute)
	}
	days, err := optionalNumber(r.PostFormValue("days"), maxKeyDays)
	if err != nil {
		return k, fault.New(fault.Invalid, "invalid_parameters", "The number of days must be a whole number from 1 to %d, or empty.", maxKeyDays)
	}
	if k.PerMinute = limit; days > 0 {
		k.ExpiresAt = now.AddDate(0, 0, days)
	}
	if !apikey.ValidName(k.Name) {
		return k, fault.New(fault.Invalid, "invalid_parameters", "The name of a key has at most %d lower-case letters, digits and hyphens, and begins with a letter.", apikey.MaxName)
	}
	return k, apikey.CheckScopes(k.Scopes)
}

// optionalNumber reads a number from 1 to most. It returns 0 for an empty text.
func optionalNumber(text string, most int) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, strconv.ErrRange
	}
	return n, nil
}

func (s *accessPages) rotateKey(w http.ResponseWriter, r *http.Request, sess session) error {
	k, secret, err := s.APIKeys.Rotate(r.Context(), nil, r.PathValue("key"), rotationTime)
	return s.done(w, r, sess, newSecret(k.Name, secret, " The old secret stays valid for 24 hours."), err)
}

// newSecret returns the message that shows a new secret once.
func newSecret(name, secret, more string) flash {
	return flash{Good: true, Text: "This is the secret of the key " + name + ". Copy it now: it is not shown again." + more, Secret: secret}
}

func (s *accessPages) revokeKey(w http.ResponseWriter, r *http.Request, sess session) error {
	name := r.PathValue("key")
	return s.done(w, r, sess, flash{Good: true, Text: "The key " + name + " is revoked. Its secrets are invalid."}, s.APIKeys.Revoke(r.Context(), nil, name))
}

// auditPage lists the audit log.
type auditPage struct {
	frame
	Actor   string
	Entries []view.AuditEntry
	Next    string
	First   bool
}

func (s *accessPages) audit(w http.ResponseWriter, r *http.Request, sess session) error {
	actor, cursor := r.URL.Query().Get("actor"), r.URL.Query().Get("cursor")
	list, err := s.Access.Audit(r.Context(), actor, cursor, auditPerPage)
	if err != nil {
		return err
	}
	return s.show(w, r, "audit", auditPage{
		frame: s.frame("Audit log", "audit", &sess), Actor: actor, Entries: list.Items,
		Next: nextPage("/audit", list.NextCursor, "actor", actor), First: cursor == "",
	})
}
