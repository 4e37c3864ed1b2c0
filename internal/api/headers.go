package api

import (
	"net/http"
	"strings"
)

// describeHeaders returns the OpenAPI descriptions of all response headers by name.
func describeHeaders() map[string]schema {
	text := schema{"type": "string"}
	seconds := schema{"type": "integer", "format": "int64", "minimum": 0}
	all := map[string]schema{}
	for _, h := range []struct {
		name, meaning string
		of            schema
		example       any
	}{
		{"X-Request-Id", "Request id: the id that the client sent, or a new one. It also appears in the server's log.", text, "HGQN4RFYTXFJRD6XXDSLPTIOKY"},
		{"Location", "Path of the created resource.", text, "/api/market-prices/jobs/17"},
		{"ETag", "Version of the response. Send it as If-None-Match to get 304 while the response is unchanged.", text, `"n4bQgYhMfWWaL-qgxVrQFQ"`},
		{"Cache-Control", "How long the response can be cached.", text, "public, max-age=10"},
		{changeHeader, "Number of the last price change in the export.", text, "1774000000000812"},
		{currencyHeader, "Currency of the export.", text, "USD"},
		{ratesHeader, "The exchange rates that were used, as a JSON array. Absent unless the request has `currency`.", text, `[{"currency":"USD","rate":0.923021967882,"date":"2026-11-20T00:00:00Z","old":false,"origin":"ecb"}]`},
		{"Age", "Seconds since the figures were computed.", seconds, 3},
		{"Retry-After", "Seconds to wait before a retry. Absent if a retry does not help, for example if an operator must repair something.", seconds, 5},
		{"RateLimit", "Remaining requests, and seconds until the limit resets. Present if the API key has a limit, and with 429.", text, `"key";r=599;t=42`},
		{"RateLimit-Policy", "The limit per minute: requests of the API key, or wrong secrets from one address.", text, `"key";q=600;w=60`},
		{"Allow", "Methods that the path supports.", text, "GET, HEAD"},
		{"WWW-Authenticate", "The required kind of credential.", text, `Bearer realm="assay"`},
		{keyReplayed, "true if the response is the stored response to an earlier request with the same Idempotency-Key; absent otherwise.", text, "true"},
	} {
		always := h.name != keyReplayed && h.name != ratesHeader && h.name != "Retry-After" && !strings.HasPrefix(h.name, "RateLimit")
		all[h.name] = schema{"description": h.meaning, "required": always, "schema": h.of, "example": h.example}
	}
	return all
}

// headers lists the response headers of an operation for a status that is not a problem.
func (op *operation) headers(status int) []string {
	names := []string{"X-Request-Id"}
	if op.scope() != "" {
		names = append(names, "RateLimit", "RateLimit-Policy")
	}
	_, cached := op.responses[http.StatusNotModified]
	switch {
	case status == http.StatusAccepted, status == http.StatusCreated && !strings.HasSuffix(op.path, "/entries"):
		names = append(names, "Location")
	case cached:
		names = append(names, "ETag", "Cache-Control")
		if strings.HasPrefix(op.path, "/api/community") {
			names = append(names, "Age")
		}
		if strings.HasPrefix(op.path, "/api/prices/snapshot") {
			names = append(names, changeHeader, currencyHeader, ratesHeader)
		}
	}
	if op.body != nil && op.body.key != noKey {
		names = append(names, keyReplayed)
	}
	return names
}

// problemHeaders lists the headers of a problem with the given status.
func problemHeaders(status int) []string {
	names := []string{"X-Request-Id", "RateLimit", "RateLimit-Policy"}
	switch status {
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusMethodNotAllowed:
		names = append(names, "Allow")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		names = append(names, "Retry-After")
	case http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		names = append(names, keyReplayed)
	}
	return names
}

// references returns OpenAPI references to headers by name.
func references(names []string) map[string]schema {
	all := map[string]schema{}
	for _, name := range names {
		all[name] = reference("headers", name)
	}
	return all
}
