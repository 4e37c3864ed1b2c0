package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"assay/internal/fault"
	"assay/internal/idempotency"
)

// onceHarness is a server with a route that takes keys.
type onceHarness struct {
	*harness
	once *once
	runs atomic.Int64 // of the work
	work func(ctx context.Context) error
}

func startOnce(t *testing.T, rule keyRule) *onceHarness {
	t.Helper()
	h := &onceHarness{harness: start(t, nil)}
	h.once = newOnce(&h.api.Deps)
	h.api.routes = newRouteTable(append(h.api.operations(), operation{
		method: "POST", path: "/api/users/{userId}/work", access: []string{Platform}, params: []param{userID},
		body: &body{limit: maxBody, like: userBody{}, key: rule, money: rule == keyRequired}, serve: func(c *call) (any, error) {
			if _, err := io.Copy(io.Discard, c.Body); err != nil {
				return nil, err
			}
			return h.once.do(c, c.values["userId"], func(seal seal) error {
				n := h.runs.Add(1)
				if h.work != nil {
					if err := h.work(c.Context()); err != nil {
						return err
					}
				}
				return seal(keeps{h.fakes}, http.StatusCreated, "/there", map[string]any{"run": n, "id": c.id})
			})
		},
	}))
	return h
}

func (h *onceHarness) post(user, body, key string, as header) asked {
	h.t.Helper()
	return h.ask("POST", "/api/users/"+user+"/work", body, as, header("Idempotency-Key: "+key))
}

func TestOnce_GivesTheFirstAnswerAgain(t *testing.T) {
	h := startOnce(t, keyOptional)
	first := h.post("u1", `{"a":1}`, "k", asPlatform)
	again := h.post("u1", `{"a":1}`, "k", asPlatform)
	if first.StatusCode != 201 || again.StatusCode != 201 || first.body != again.body || h.runs.Load() != 1 {
		t.Errorf("first %d %s, again %d %s, done %d times", first.StatusCode, first.body, again.StatusCode, again.body, h.runs.Load())
	}
	for _, name := range []string{"Location", "Content-Type"} {
		if first.Header.Get(name) != again.Header.Get(name) || first.Header.Get(name) == "" {
			t.Errorf("%s: %q, then %q", name, first.Header.Get(name), again.Header.Get(name))
		}
	}
	if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("it is not told which answer is the first")
	}
}

func TestOnce_CountsPerRouteRoleAndUser(t *testing.T) {
	h := startOnce(t, keyOptional)
	h.post("u1", `{}`, "k", asPlatform)
	for _, other := range []func() asked{
		func() asked { return h.post("u2", `{}`, "k", asPlatform) },
		func() asked { return h.post("u1", `{}`, "k", asAdmin) },
		func() asked { return h.post("u1", `{}`, "l", asPlatform) },
	} {
		before := h.runs.Load()
		if got := other(); got.StatusCode != 201 || h.runs.Load() != before+1 {
			t.Errorf("status %d, done %d times", got.StatusCode, h.runs.Load()-before)
		}
	}
}

func TestOnce_RefusesAnotherBodyUnderTheSameKey(t *testing.T) {
	h := startOnce(t, keyOptional)
	h.post("u1", `{"a":1}`, "k", asPlatform)
	h.refuses(http.StatusUnprocessableEntity, "idempotency_key_reused", h.post("u1", `{"a": 1}`, "k", asPlatform))
	if h.runs.Load() != 1 {
		t.Errorf("done %d times", h.runs.Load())
	}
}

func TestOnce_RefusesWhileTheFirstRuns(t *testing.T) {
	h := startOnce(t, keyOptional)
	begun, end := make(chan struct{}), make(chan struct{})
	h.work = func(context.Context) error {
		close(begun)
		<-end
		return nil
	}
	first := make(chan asked)
	go func() { first <- h.post("u1", `{"a":1}`, "k", asPlatform) }()
	<-begun
	got := h.post("u1", `{"a":1}`, "k", asPlatform)
	h.refuses(http.StatusConflict, "request_in_progress", got)
	if got.Header.Get("Retry-After") == "" {
		t.Error("it is not told when to come back")
	}
	h.refuses(http.StatusUnprocessableEntity, "idempotency_key_reused", h.post("u1", `{"a":2}`, "k", asPlatform))
	close(end)
	if a := <-first; a.StatusCode != 201 {
		t.Errorf("status %d", a.StatusCode)
	}
	if got := h.post("u1", `{"a":1}`, "k", asPlatform); got.StatusCode != 201 || h.runs.Load() != 1 {
		t.Errorf("status %d, done %d times", got.StatusCode, h.runs.Load())
	}
}

func TestOnce_KeepsRefusalsThatAreFinal(t *testing.T) {
	for _, kind := range []fault.Kind{fault.NotFound, fault.Conflict, fault.Unprocessable} {
		h := startOnce(t, keyOptional)
		h.work = func(context.Context) error { return fault.New(kind, "refused", "No.") }
		first, again := h.post("u1", `{}`, "k", asPlatform), h.post("u1", `{}`, "k", asPlatform)
		if first.StatusCode != kind.Status() || first.body != again.body || first.StatusCode != again.StatusCode || h.runs.Load() != 1 {
			t.Errorf("first %d %s, again %d %s", first.StatusCode, first.body, again.StatusCode, again.body)
		}
		if again.Header.Get("Content-Type") != problemType {
			t.Errorf("the second time it is %s", again.Header.Get("Content-Type"))
		}
	}
}

func TestOnce_TriesAgainWhatFailedOrDied(t *testing.T) {
	for _, failure := range []error{errors.New("broken"), fault.New(fault.Unavailable, "later", "Later."), fault.New(fault.Invalid, "wrong", "Wrong."), nil} {
		h := startOnce(t, keyOptional)
		h.work = func(context.Context) error {
			if failure == nil {
				panic("died")
			}
			return failure
		}
		if got := h.post("u1", `{}`, "k", asPlatform); got.StatusCode < 400 {
			t.Errorf("status %d", got.StatusCode)
		}
		h.work = nil
		if got := h.post("u1", `{}`, "k", asPlatform); got.StatusCode != 201 {
			t.Errorf("after %v: status %d %s", failure, got.StatusCode, got.body)
		}
	}
}

// TestOnce_AnswersAsAnotherInstanceDid is of a request that another instance
// answered while this one worked on it.
func TestOnce_AnswersAsAnotherInstanceDid(t *testing.T) {
	for _, outcome := range []error{nil, fault.New(fault.Conflict, "not_active", "It is sold."), errors.New("outcome of the commit is unknown")} {
		h := startOnce(t, keyOptional)
		h.work = func(context.Context) error {
			h.work = nil
			h.once.open = map[idempotency.Key]idempotency.Digest{} // another one knows nothing of this one's
			h.post("u1", `{}`, "k", asPlatform)
			return outcome
		}
		got := h.post("u1", `{}`, "k", asPlatform)
		if got.StatusCode != 201 || !strings.Contains(got.body, `"run":2`) || got.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after %v: status %d, %s", outcome, got.StatusCode, got.body)
		}
	}
}

// TestOnce_TellsThatAnAnswerIsLost is of money that was moved, of which no answer
// tells: nothing is done again, and no refusal takes the answer's place.
func TestOnce_TellsThatAnAnswerIsLost(t *testing.T) {
	for _, outcome := range []error{idempotency.ErrKeyUsed, fault.New(fault.Conflict, "not_active", "It is sold.")} {
		h := startOnce(t, keyRequired)
		h.work = func(context.Context) error { return outcome }
		h.fakes.posted = map[string]int64{"POST /api/users/{userId}/work platform u1 k": 12}
		for _, body := range []string{`{}`, `{}`, `{"a":1}`} {
			got := h.post("u1", body, "k", asPlatform)
			h.refuses(http.StatusConflict, "answer_lost", got)
			if !strings.Contains(got.body, "transaction 12 ") {
				t.Errorf("it is not told where to look: %s", got.body)
			}
		}
	}
}

func TestOnce_ChecksTheKey(t *testing.T) {
	h := startOnce(t, keyRequired)
	h.refuses(http.StatusBadRequest, "idempotency_key_required", h.ask("POST", "/api/users/u1/work", `{}`, asPlatform))
	for _, bad := range []string{"", strings.Repeat("k", idempotency.MaxKey+1), "k\u00e9"} {
		h.refuses(http.StatusBadRequest, "invalid_idempotency_key", h.post("u1", `{}`, bad, asPlatform))
	}
	if got := h.post("u1", `{}`, strings.Repeat("k", idempotency.MaxKey), asPlatform); got.StatusCode != 201 {
		t.Errorf("status %d", got.StatusCode)
	}
	if h := startOnce(t, keyOptional); h.ask("POST", "/api/users/u1/work", `{}`, asPlatform).StatusCode != 201 {
		t.Error("a key that may be left out is demanded")
	}
}
