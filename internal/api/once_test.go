package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/wallet"
)

// onceHarness is a server with a test route that accepts an Idempotency-Key.
type onceHarness struct {
	*harness
	once *once
	runs atomic.Int64                    // number of calls of the handler's work
	step func(ctx context.Context) error // part of the work; may be nil
}

func startOnce(t *testing.T, rule keyRule) *onceHarness {
	t.Helper()
	h := &onceHarness{harness: startServer(t, nil)}
	h.once = newOnce(&h.api.Deps)
	h.api.routes = newRouteTable(append(h.api.operations(), operation{
		method: "POST", path: "/api/users/{userId}/work", access: []string{Platform}, params: []param{userID},
		body: &body{limit: maxBody, like: userBody{}, key: rule, money: rule == keyRequired}, serve: func(c *call) (any, error) {
			if _, err := io.Copy(io.Discard, c.Body); err != nil {
				return nil, err
			}
			return h.once.do(c, c.values["userId"], func(seal seal) error {
				n := h.runs.Add(1)
				if h.step != nil {
					if err := h.step(c.Context()); err != nil {
						return err
					}
				}
				return h.store.InTx(c.Context(), func(tx *db.Tx) error {
					return seal(tx, http.StatusCreated, "/there", map[string]any{"run": n, "id": c.id})
				})
			})
		},
	}))
	return h
}

func (h *onceHarness) work(user, body, key string, as header) result {
	h.t.Helper()
	return h.request("POST", "/api/users/"+user+"/work", body, as, header("Idempotency-Key: "+key))
}

func TestOnce_ReplaysTheFirstResponse(t *testing.T) {
	h := startOnce(t, keyOptional)
	first := h.work("u1", `{"a":1}`, "k", asPlatform)
	again := h.work("u1", `{"a":1}`, "k", asPlatform)
	if first.StatusCode != 201 || again.StatusCode != 201 || first.body != again.body || h.runs.Load() != 1 {
		t.Errorf("got first %d %s, second %d %s, %d runs; want the same 201 twice and 1 run", first.StatusCode, first.body, again.StatusCode, again.body, h.runs.Load())
	}
	for _, name := range []string{"Location", "Content-Type"} {
		if first.Header.Get(name) != again.Header.Get(name) || first.Header.Get(name) == "" {
			t.Errorf("header %s: got %q, then %q; want the same value twice", name, first.Header.Get(name), again.Header.Get(name))
		}
	}
	if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("Idempotency-Replayed: got %q, then %q; want it in the second response only",
			first.Header.Get("Idempotency-Replayed"), again.Header.Get("Idempotency-Replayed"))
	}
}

func TestOnce_ScopesKeysByRoleAndUser(t *testing.T) {
	h := startOnce(t, keyOptional)
	h.work("u1", `{}`, "k", asPlatform)
	for _, other := range []func() result{
		func() result { return h.work("u2", `{}`, "k", asPlatform) },
		func() result { return h.work("u1", `{}`, "k", asAdmin) },
		func() result { return h.work("u1", `{}`, "l", asPlatform) },
	} {
		before := h.runs.Load()
		if got := other(); got.StatusCode != 201 || h.runs.Load() != before+1 {
			t.Errorf("got status %d, %d runs; want 201 and 1 run", got.StatusCode, h.runs.Load()-before)
		}
	}
}

func TestOnce_RefusesAnotherBodyUnderTheSameKey(t *testing.T) {
	h := startOnce(t, keyOptional)
	h.work("u1", `{"a":1}`, "k", asPlatform)
	h.wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused", h.work("u1", `{"a": 1}`, "k", asPlatform))
	if h.runs.Load() != 1 {
		t.Errorf("got %d runs, want 1", h.runs.Load())
	}
}

func TestOnce_RefusesASecondRequestInProgress(t *testing.T) {
	h := startOnce(t, keyOptional)
	begun, end := make(chan struct{}), make(chan struct{})
	h.step = func(context.Context) error {
		close(begun)
		<-end
		return nil
	}
	first := make(chan result)
	go func() { first <- h.work("u1", `{"a":1}`, "k", asPlatform) }()
	<-begun
	got := h.work("u1", `{"a":1}`, "k", asPlatform)
	h.wantProblem(http.StatusConflict, "request_in_progress", got)
	if got.Header.Get("Retry-After") == "" {
		t.Error("got no Retry-After header, want one")
	}
	h.wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused", h.work("u1", `{"a":2}`, "k", asPlatform))
	close(end)
	if a := <-first; a.StatusCode != 201 {
		t.Errorf("first request: got status %d, want 201", a.StatusCode)
	}
	if got := h.work("u1", `{"a":1}`, "k", asPlatform); got.StatusCode != 201 || h.runs.Load() != 1 {
		t.Errorf("got status %d, %d runs; want 201 and 1 run", got.StatusCode, h.runs.Load())
	}
}

func TestOnce_StoresFinalRefusals(t *testing.T) {
	for _, kind := range []fault.Kind{fault.NotFound, fault.Conflict, fault.Unprocessable} {
		h := startOnce(t, keyOptional)
		h.step = func(context.Context) error { return fault.New(kind, "refused", "No.") }
		first, again := h.work("u1", `{}`, "k", asPlatform), h.work("u1", `{}`, "k", asPlatform)
		if first.StatusCode != kind.Status() || first.body != again.body || first.StatusCode != again.StatusCode || h.runs.Load() != 1 {
			t.Errorf("got first %d %s, second %d %s; want the same refusal twice", first.StatusCode, first.body, again.StatusCode, again.body)
		}
		if again.Header.Get("Content-Type") != problemType {
			t.Errorf("second response: got Content-Type %s, want %s", again.Header.Get("Content-Type"), problemType)
		}
	}
}

func TestOnce_RunsAgainAfterAFailure(t *testing.T) {
	for _, failure := range []error{errors.New("broken"), fault.New(fault.Unavailable, "later", "Later."), fault.New(fault.Invalid, "wrong", "Wrong."), nil} {
		h := startOnce(t, keyOptional)
		h.step = func(context.Context) error {
			if failure == nil {
				panic("crashed")
			}
			return failure
		}
		if got := h.work("u1", `{}`, "k", asPlatform); got.StatusCode < 400 {
			t.Errorf("got status %d, want an error", got.StatusCode)
		}
		h.step = nil
		if got := h.work("u1", `{}`, "k", asPlatform); got.StatusCode != 201 {
			t.Errorf("after %v: got status %d %s, want 201", failure, got.StatusCode, got.body)
		}
	}
}

// TestOnce_ReturnsTheResponseOfAnotherInstance completes the same request on another
// instance while this instance works on it.
func TestOnce_ReturnsTheResponseOfAnotherInstance(t *testing.T) {
	for _, outcome := range []error{nil, fault.New(fault.Conflict, "not_active", "It is sold."), errors.New("outcome of the commit is unknown")} {
		h := startOnce(t, keyOptional)
		h.step = func(context.Context) error {
			h.step = nil
			h.once.open = map[idempotency.Key]idempotency.Digest{} // requests in progress are per instance
			h.work("u1", `{}`, "k", asPlatform)
			return outcome
		}
		got := h.work("u1", `{}`, "k", asPlatform)
		if got.StatusCode != 201 || !strings.Contains(got.body, `"run":2`) || got.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after %v: got status %d, %s; want the replayed response of run 2", outcome, got.StatusCode, got.body)
		}
	}
}

// TestOnce_ReportsALostResponse posts a ledger transaction and stores no response. A request with
// the same key must not move money again, and must not store a refusal as the response.
func TestOnce_ReportsALostResponse(t *testing.T) {
	for _, outcome := range []error{idempotency.ErrKeyUsed, fault.New(fault.Conflict, "not_active", "It is sold.")} {
		h := startOnce(t, keyRequired)
		h.step = func(context.Context) error { return outcome }
		posted := h.post(wallet.Posting{
			Account: wallet.Account{User: "u1", Currency: "USD"}, Kind: wallet.KindDeposit, Amount: 1,
			Request: wallet.Request{Scope: "POST /api/users/{userId}/work platform u1", Key: "k"},
		})
		for _, body := range []string{`{}`, `{}`, `{"a":1}`} {
			got := h.work("u1", body, "k", asPlatform)
			h.wantProblem(http.StatusConflict, "response_lost", got)
			if want := fmt.Sprintf("transaction %d ", posted); !strings.Contains(got.body, want) {
				t.Errorf("got body %s, want %q in it", got.body, want)
			}
		}
	}
}

// TestOnce_RefusesAnAlteredResponse alters a stored response about money. The seal no longer
// matches, so the server must not replay the response.
func TestOnce_RefusesAnAlteredResponse(t *testing.T) {
	h := startOnce(t, keyRequired)
	if got := h.work("u1", `{}`, "k", asPlatform); got.StatusCode != 201 {
		t.Fatalf("got status %d %s, want 201", got.StatusCode, got.body)
	}
	h.exec(`UPDATE idempotent_response SET status = 200`)
	h.wantProblem(http.StatusServiceUnavailable, "response_tampered", h.work("u1", `{}`, "k", asPlatform))
	if h.runs.Load() != 1 {
		t.Errorf("got %d runs, want 1", h.runs.Load())
	}
}

func TestOnce_ChecksTheKey(t *testing.T) {
	h := startOnce(t, keyRequired)
	h.wantProblem(http.StatusBadRequest, "idempotency_key_required", h.request("POST", "/api/users/u1/work", `{}`, asPlatform))
	for _, bad := range []string{"", strings.Repeat("k", idempotency.MaxKey+1), "k\u00e9"} {
		h.wantProblem(http.StatusBadRequest, "invalid_idempotency_key", h.work("u1", `{}`, bad, asPlatform))
	}
	if got := h.work("u1", `{}`, strings.Repeat("k", idempotency.MaxKey), asPlatform); got.StatusCode != 201 {
		t.Errorf("key of maximum length: got status %d, want 201", got.StatusCode)
	}
	if h := startOnce(t, keyOptional); h.request("POST", "/api/users/u1/work", `{}`, asPlatform).StatusCode != 201 {
		t.Error("request without the optional key: got a refusal, want 201")
	}
}
