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

// encoding returns how values are encoded: times in UTC, lists and maps never null, maps
// in order.
func encoding() json.Options {
	return json.JoinOptions(
		json.Deterministic(true),
		json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
			return e.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
		})),
	)
}

const jsonType = "application/json"

// handler serves a call. It returns a response, or a value to be sent as JSON with
// status 200.
type handler func(c *call) (any, error)

// response is a response of its own status or form. The zero response was sent already.
type response struct {
	status      int
	location    string // header; empty: none
	replayed    bool   // it was stored under the request's Idempotency-Key
	value       any    // the body, to be encoded as JSON; nil: it is body
	contentType string
	body        []byte // nil: none
}

// respond sends what a handler returned. It returns an error, and sends nothing, if the
// value cannot be encoded.
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

// send writes a response. A client that has gone is no error.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// cached is a response that clients may keep.
type cached struct {
	contentType string
	body        []byte
	etag        string
}

func cache(contentType string, body []byte) cached {
	sum := sha256.Sum256(body)
	return cached{contentType, body, `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
}

// serve sends the body, or 304 to a client that has it.
func (a cached) serve(w http.ResponseWriter, r *http.Request, maxAge time.Duration) {
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(maxAge/time.Second)))
	if has(r.Header.Get("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, a.contentType, a.body)
}

// has reports whether an If-None-Match names the tag, weak or strong.
func has(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}
