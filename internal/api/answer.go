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

// encoding is how answers are written: times in UTC, lists and maps never
// null, maps in order.
func encoding() json.Options {
	return json.JoinOptions(
		json.Deterministic(true),
		json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
			return e.WriteToken(jsontext.String(t.UTC().Format(time.RFC3339Nano)))
		})),
	)
}

const jsonType = "application/json"

// writeJSON answers with a value as JSON. It returns an error, and writes nothing,
// where the value cannot be encoded.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := json.Marshal(value, encoding())
	if err != nil {
		return err
	}
	send(w, status, jsonType, body)
	return nil
}

// send writes a response. A client that has gone is no error.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// cached is an answer that clients may keep.
type cached struct {
	contentType string
	body        []byte
	etag        string
}

func cache(contentType string, body []byte) cached {
	sum := sha256.Sum256(body)
	return cached{contentType, body, `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`}
}

// serve answers with the body, or with 304 to a client that has it.
func (a cached) serve(w http.ResponseWriter, r *http.Request, maxAge time.Duration) {
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(maxAge/time.Second)))
	if has(r.Header.Get("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	send(w, http.StatusOK, a.contentType, a.body)
}

// has reports whether an If-None-Match names the tag, weakly or not.
func has(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}
