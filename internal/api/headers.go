package api

import (
	"net/http"
	"strings"
)

// describeHeaders describes the headers of responses, by their names.
func describeHeaders() map[string]schema {
	text := schema{"type": "string"}
	seconds := schema{"type": "integer", "format": "int64", "minimum": 0}
	all := map[string]schema{}
	for _, h := range []struct {
		name, meaning string
		of            schema
		example       any
	}{
		{"X-Request-Id", "Id of the request: the one that the client sent, or a new one. It is also in the server's log.", text, "HGQN4RFYTXFJRD6XXDSLPTIOKY"},
		{"Location", "Path of what was created.", text, "/api/market-prices/jobs/17"},
		{"ETag", "Version of the response. Send it as If-None-Match to get 304 while it is the same.", text, `"n4bQgYhMfWWaL-qgxVrQFQ"`},
		{"Cache-Control", "For how long the response can be cached.", text, "public, max-age=10"},
		{"Age", "Seconds since the figures were computed.", seconds, 3},
		{"Retry-After", "Seconds to wait before the next request. Absent if a retry does not help, such as when an operator must repair something.", seconds, 5},
		{"RateLimit", "Requests left within the limit, and seconds until it is renewed.", text, `"failures";r=0;t=42`},
		{"RateLimit-Policy", "The limit: wrong secrets per minute from one address.", text, `"failures";q=20;w=60`},
		{"Allow", "Methods that the path takes.", text, "GET, HEAD"},
		{"WWW-Authenticate", "The kind of credential that is needed.", text, `Bearer realm="assay"`},
		{keyReplayed, "true if this is the stored response to an earlier request with the same Idempotency-Key; absent otherwise.", text, "true"},
	} {
		always := h.name != keyReplayed && h.name != "Retry-After"
		all[h.name] = schema{"description": h.meaning, "required": always, "schema": h.of, "example": h.example}
	}
	return all
}

// headers lists the headers of a response that is not a problem.
func (op *operation) headers(status int) []string {
	names := []string{"X-Request-Id"}
	_, cached := op.answers[http.StatusNotModified]
	switch {
	case status == http.StatusAccepted, status == http.StatusCreated && !strings.HasSuffix(op.path, "/entries"):
		names = append(names, "Location")
	case cached:
		names = append(names, "ETag", "Cache-Control")
		if strings.HasPrefix(op.path, "/api/community") {
			names = append(names, "Age")
		}
	}
	if op.body != nil && op.body.key != noKey {
		names = append(names, keyReplayed)
	}
	return names
}

// problemHeaders lists what a problem of a status carries.
func problemHeaders(status int) []string {
	names := []string{"X-Request-Id"}
	switch status {
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusMethodNotAllowed:
		names = append(names, "Allow")
	case http.StatusTooManyRequests:
		names = append(names, "Retry-After", "RateLimit", "RateLimit-Policy")
	case http.StatusServiceUnavailable:
		names = append(names, "Retry-After")
	case http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		names = append(names, keyReplayed)
	}
	return names
}

// references refers to headers by their names.
func references(names []string) map[string]schema {
	all := map[string]schema{}
	for _, name := range names {
		all[name] = reference("headers", name)
	}
	return all
}
