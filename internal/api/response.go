package api

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// encoding returns the JSON options of all responses. Times are in UTC, nil slices and maps are
// empty, and maps are sorted by key.
func encoding() json.Options {
	return json.JoinOptions(
		json.Deterministic(true),
		json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
			return e.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
		})),
	)
}

const jsonType = "application/json"

// handler serves a call. It returns a response, or a value to send as JSON with status 200.
type handler func(c *call) (any, error)

// response is the result of a handler that sets a status, headers or an encoded body. The
// zero response means that the handler has already sent the response.
type response struct {
	status      int
	location    string // header Location; empty: none
	replayed    bool   // true if the response was stored under the request's Idempotency-Key
	value       any    // body to encode as JSON; nil: use body
	contentType string // of body
	body        []byte // nil: no body
}

// respond sends the result of a handler. If the value cannot be encoded, respond sends
// nothing and returns an error.
func respond(w http.ResponseWriter, returned any) (err error) {
	r, ok := returned.(response)
	if !ok {
		r = response{status: http.StatusOK, value: returned}
	}
	if r.value != nil {
		r.contentType = jsonType
		if r.body, err = json.Marshal(r.value, encoding()); err != nil {
			return err
		}
	}
	if r.replayed {
		w.Header().Set(keyReplayed, "true")
	}
	if r.location != "" {
		w.Header().Set("Location", r.location)
	}
	switch {
	case r.body != nil:
		send(w, r.status, r.contentType, r.body)
	case r.status != 0:
		w.WriteHeader(r.status)
	}
	return nil
}

// send writes a response. It ignores write errors, which mean that the client disconnected.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// cached is a response that clients may cache.
type cached struct {
	contentType string
	body        []byte
	etag        string
}

func cache(contentType string, body []byte) cached {
	sum := sha256.Sum256(body)
	return cached{contentType, body, `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
}

// serve sends the body, or 304 if the client has the current version.
func (c cached) serve(w http.ResponseWriter, r *http.Request, maxAge time.Duration) {
	w.Header().Set("ETag", c.etag)
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(maxAge/time.Second)))
	if matches(r.Header.Get("If-None-Match"), c.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, c.contentType, c.body)
}

// matches reports whether an If-None-Match header contains the ETag, weak or strong.
func matches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}
