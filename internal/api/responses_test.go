package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"assay/internal/access"
	"assay/internal/api/apitest"
	"assay/internal/fault"
)

// checkResponse checks a response against the document: its status, headers, media type and
// body.
func (d document) checkResponse(t *testing.T, op operation, got result) {
	t.Helper()
	path := []string{"paths", op.path, strings.ToLower(op.method), "responses", strconv.Itoa(got.StatusCode)}
	if ref, ok := d.At(append(path, "$ref")...).(string); ok {
		path = apitest.Path(ref)
	}
	response := d.At(path...)
	if response == nil {
		t.Errorf("%s %s: status %d is not described: %s", op.method, op.path, got.StatusCode, got.body)
		return
	}
	d.checkHeaders(t, op, got, response)
	media, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	path = append(path, "content", media, "schema")
	switch {
	case got.body == "" && apitest.At(response, "content") == nil:
		return
	case d.At(path...) == nil:
		t.Errorf("%s %s: %d as %s is not described", op.method, op.path, got.StatusCode, media)
		return
	case !strings.HasSuffix(media, "json"), media == ndjsonType:
		return
	}
	var value any
	err := json.Unmarshal([]byte(got.body), &value)
	if err == nil {
		err = d.Check(value, path...)
	}
	if err != nil {
		t.Errorf("%s %s: the response with status %d does not match the document: %v", op.method, op.path, got.StatusCode, err)
	}
}

// checkHeaders checks that the document describes the headers of a response, and that the
// response has all required headers.
func (d document) checkHeaders(t *testing.T, op operation, got result, response any) {
	t.Helper()
	described, _ := apitest.At(response, "headers").(map[string]any)
	for name := range describeHeaders() {
		ref, _ := apitest.At(described[name], "$ref").(string)
		value := got.Header.Get(name)
		switch {
		case value != "" && ref == "" && value != "no-store":
			t.Errorf("%s %s: the header %[4]s of status %[3]d is not described", op.method, op.path, got.StatusCode, name)
		case value == "" && ref != "" && d.At(append(apitest.Path(ref), "required")...) == true:
			t.Errorf("%s %s: the response with status %d lacks the required header %s", op.method, op.path, got.StatusCode, name)
		}
	}
}

// TestOpenAPI_MatchesTheResponses produces every documented status of every route, and
// checks each response against the document.
func TestOpenAPI_MatchesTheResponses(t *testing.T) {
	h := newHarness(t, nil)
	d := h.document()
	seen := make([]map[int]bool, len(h.api.routes.operations))
	check := func(t *testing.T, i int, responses []result) {
		for _, got := range responses {
			seen[i][got.StatusCode] = true
			d.checkResponse(t, h.api.routes.operations[i], got)
		}
	}
	for i, op := range h.api.routes.operations {
		seen[i] = map[int]bool{}
		inBubble(t, trustLoopback, func(t *testing.T, h *harness) { check(t, i, succeed(h, op)) })
		if _, starts := op.responses[http.StatusAccepted]; starts {
			inBubble(t, trustLoopback, func(t *testing.T, h *harness) { check(t, i, succeedAlone(h, op)) })
		}
	}
	for _, s := range failures() {
		inBubble(t, trustLoopback, func(t *testing.T, h *harness) {
			if s.begin != nil {
				s.begin(h)
			}
			for i, op := range h.api.routes.operations {
				check(t, i, s.send(h, op))
			}
		})
	}
	for i, op := range h.api.routes.operations {
		responses, _ := d.At("paths", op.path, strings.ToLower(op.method), "responses").(map[string]any)
		for status := range responses {
			if n, _ := strconv.Atoi(status); !seen[i][n] {
				t.Errorf("%s %s: got no response with the described status %s, want one", op.method, op.path, status)
			}
		}
		if len(responses) == 0 {
			t.Errorf("%s %s is not described", op.method, op.path)
		}
	}
	paths, _ := d.At("paths").(map[string]any)
	operations := 0
	for path := range paths {
		operations += len(apitest.At(paths, path).(map[string]any))
	}
	if operations != len(h.api.routes.operations) {
		t.Errorf("got %d described operations, want %d", operations, len(h.api.routes.operations))
	}
}

// failure is a situation in which requests fail.
type failure struct {
	begin func(h *harness) // may be nil
	send  func(h *harness, op operation) []result
}

func failures() []failure {
	example := func(h *harness, op operation) []result { return h.example(op) }
	return []failure{
		{nil, refuse},
		{nil, lackResource},
		{nil, failCommits},
		{func(h *harness) { h.must(h.store.Close()) }, example},
		{(*harness).loseDatabase, example},
	}
}

// example sends the example of an operation.
func (h *harness) example(op operation, headers ...header) []result {
	path, body := example(op)
	return []result{h.request(op.method, path, body, append(headers, asAdmin)...)}
}

// succeed sends valid requests, some of them twice, while a job is queued.
func succeed(h *harness, op operation) (all []result) {
	path, body := example(op)
	if op.body != nil && op.body.key != noKey {
		const key header = "Idempotency-Key: k"
		all = append(all, h.request(op.method, path, body, asAdmin, key), h.request(op.method, path, body, asAdmin, key), h.request(op.method, path, body+" ", asAdmin, key))
	}
	if strings.HasSuffix(path, "/refresh") {
		all = append(all, h.request(op.method, path+"?dryRun=1", "", asAdmin))
	}
	if strings.HasSuffix(path, "/sync") {
		all = append(all, h.request(op.method, strings.Replace(path, "u1", "onsteam", 1)+"?source=steam", "", asAdmin))
	}
	return append(all, slices.Concat(h.example(op), h.example(op), h.example(op, "If-None-Match: *"))...)
}

// succeedAlone sends a valid request while no job is queued.
func succeedAlone(h *harness, op operation) []result {
	h.must(h.deps.Engine.Cancel(h.t.Context(), queuedJob))
	return h.example(op)
}

// refuse sends invalid requests and requests without access.
func refuse(h *harness, op operation) (all []result) {
	path, body := example(op)
	send := func(path, body string, headers ...header) {
		all = append(all, h.request(op.method, path, body, headers...))
	}
	send(path+"?unheard=of", body, asAdmin)
	all = append(all, h.request("TRACE", path, body, asAdmin))
	limit := maxBody
	if op.body != nil {
		limit = int(op.body.limit)
	}
	send(path, strings.Repeat(" ", limit+1), asAdmin)
	const remote header = "X-Forwarded-For: 198.51.100.1"
	send(path, body, remote)
	send(path, body, asMarket, remote)
	send(path, body, asPlatform, remote)
	send(path, body, asReader(), remote)
	if op.body != nil {
		send(path, body, asAdmin, "Content-Type: text/plain")
		send(path, `{"unheard":"of"}`, asAdmin)
		r := h.newRequest(op.method, path, iotest.ErrReader(os.ErrDeadlineExceeded)) // as for a slow client
		for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + adminToken, "Idempotency-Key": "k"} {
			r.Header.Set(name, value)
		}
		r.ContentLength = 100
		all = append(all, h.send(r))
	}
	for _, p := range op.params {
		switch {
		case p.ofUser && p.in == "query":
			send(path+"?"+p.name+"=house:fee", body, asAdmin)
		case p.name == "currency" && slices.Contains(op.faults, http.StatusUnprocessableEntity):
			send(path+"?currency=CHF", body, asAdmin)
		case p.ofUser:
			send(strings.NewReplacer("/u1", "/house:fee", "/idle", "/house:fee").Replace(path), body, asAdmin)
		}
	}
	for range access.MaxFailures + 1 {
		send(path, body, "Authorization: Bearer "+wrongSecret, remote)
	}
	h.clock.set(h.clock.Now().Add(access.FailureWindow)) // ends the limit for the client address
	return all
}

// lackResource sends requests about unknown resources.
func lackResource(h *harness, op operation) (all []result) {
	_, body := example(op)
	userID := "unknown"
	if op.method != http.MethodGet {
		userID = "new" // some writes create the user
	}
	path := strings.NewReplacer("{id}", "99", "{name}", "unknown", "{userId}", userID, "{provider}", "unknown", "{number}", "99", "{key}", "unknown").Replace(op.path)
	switch {
	case strings.HasSuffix(path, "/at"):
		h.exec(`INSERT INTO price_day (item_id, day, open, high, low, close, changes) SELECT id, 0, 1, 1, 1, 1, 0 FROM item WHERE name = $1`, asiimov)
		all = append(all, h.request(op.method, strings.Replace(op.path, "{name}", url.PathEscape(asiimov), 1)+"?time=1970-01-02T00:00:00Z", "", asAdmin))
	case op.path == "/api/functions/admin/payment-fee-rules", strings.HasSuffix(path, "/rollback"):
		path += "?version=99"
	case strings.HasSuffix(path, "/changes"), strings.HasSuffix(path, "/stream"):
		path += "?since=99"
	case strings.HasSuffix(path, "/events"):
		path += "?after=99"
	case strings.HasSuffix(path, "/quote"):
		invalid := strings.Replace(body, "USD", "ABC", 1)
		all = append(all, h.request(op.method, path, invalid, asAdmin))
		body = strings.Replace(body, "}", `,"version":99}`, 1)
	}
	return append(all, h.request(op.method, path, body, asAdmin))
}

// failCommits makes commits fail with each kind of fault that the operation documents.
func failCommits(h *harness, op operation) (all []result) {
	for _, kind := range []fault.Kind{fault.NotFound, fault.Conflict, fault.Unprocessable, fault.Upstream} {
		if slices.Contains(op.faults, kind.Status()) {
			h.faults.Store(fault.New(kind, codes[kind], "No."))
			all = append(all, h.example(op)...)
		}
	}
	h.faults.Store(nil)
	return all
}

// codes has one documented problem code for each kind of fault.
var codes = map[fault.Kind]string{
	fault.NotFound: "user_not_found", fault.Conflict: "job_running", fault.Unprocessable: "invalid_payment", fault.Upstream: "fee_rules_unreachable",
}
