package api

import (
	"net/http"
	"strings"
	"testing"
)

const entriesPath = "/api/functions/admin/wallet-ledger/u1/entries"

func (h *harness) postEntry(body, key string) result {
	return h.request("POST", entriesPath, body, asAdmin, header("Idempotency-Key: "+key))
}

func TestWalletEntries_AcceptEachKind(t *testing.T) {
	h := startServer(t, nil)
	for _, body := range []string{
		`{"kind":"deposit","currency":"USD","amount":1000}`,
		`{"kind":"withdrawal","currency":"JPY","amount":1,"note":"paid out"}`,
		`{"kind":"correction","currency":"USD","amount":-5,"note":"charged twice"}`,
		`{"kind":"correction","reverses":"17"}`,
	} {
		if got := h.postEntry(body, body); got.StatusCode != http.StatusCreated {
			t.Errorf("%s: got %d %s, want 201", body, got.StatusCode, got.body)
		}
	}
	calls := h.fakes.calls()
	if len(calls) != 4 || !strings.Contains(calls[0], `"Scope":"POST /api/functions/admin/wallet-ledger/{userId}/entries admin u1"`) || !strings.Contains(calls[3], `"Reverses":17`) {
		t.Errorf("got calls %v, want 4 with the scope and the reversed transaction", calls)
	}
}

func TestWalletEntries_RefuseInvalidPostings(t *testing.T) {
	h := startServer(t, nil)
	for body, pointer := range map[string]string{
		`{"currency":"USD","amount":1}`:                                               "/kind",
		`{"kind":"sale","currency":"USD","amount":1}`:                                 "/kind",
		`{"kind":"deposit","amount":1}`:                                               "/currency",
		`{"kind":"deposit","currency":"usd","amount":1}`:                              "/currency",
		`{"kind":"deposit","currency":"XXX","amount":1}`:                              "/currency",
		`{"kind":"deposit","currency":"USD"}`:                                         "/amount",
		`{"kind":"deposit","currency":"USD","amount":-1}`:                             "/amount",
		`{"kind":"deposit","currency":"USD","amount":0}`:                              "/amount",
		`{"kind":"deposit","currency":"USD","amount":1.5}`:                            "/amount",
		`{"kind":"deposit","currency":"USD","amount":"1"}`:                            "/amount",
		`{"kind":"deposit","currency":"USD","amount":1000000000000001}`:               "/amount",
		`{"kind":"deposit","currency":"USD","amount":1e3}`:                            "/amount",
		`{"kind":"deposit","currency":"USD","amount":null}`:                           "/amount",
		`{"kind":null,"currency":"USD","amount":-1}`:                                  "/kind",
		`{"kind":"correction","currency":"USD","amount":1,"note":" "}`:                "/note",
		`{"kind":"correction","currency":"USD","amount":1,"note":"\u00a0"}`:           "/note",
		`{"kind":"correction","currency":"USD","amount":1,"note":""}`:                 "/note",
		`{"kind":"correction","currency":"USD","amount":1,"note":null}`:               "/note",
		`{"kind":"correction","currency":"USD","amount":1,"note":5}`:                  "/note",
		`{"kind":"deposit","currency":"USD","amount":1,"balance":2}`:                  "/balance",
		`{"kind":"deposit","currency":"USD","amount":1,"reverses":"1"}`:               "/reverses",
		`{"kind":"correction","currency":"USD","amount":1}`:                           "/note",
		`{"kind":"correction","currency":"USD","amount":1,"note":"n","reverses":"1"}`: "/reverses",
		`{"kind":"correction","reverses":17}`:                                         "/reverses",
		`{"kind":"correction","reverses":"-1"}`:                                       "/reverses",
		`{"kind":"correction","reverses":"017"}`:                                      "/reverses",
	} {
		got := h.postEntry(body, "k")
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, `"pointer":"`+pointer+`"`) {
			t.Errorf("%s: got %d %s, want 400 at %s", body, got.StatusCode, got.body, pointer)
		}
		if n := strings.Count(got.body, `"pointer":`); n != 1 {
			t.Errorf("%s: got %d faults, want 1: %s", body, n, got.body)
		}
	}
	h.wantProblem(http.StatusForbidden, "forbidden", h.request("POST", entriesPath, `{}`, asPlatform, header("Idempotency-Key: k")))
}

func TestVerifyWallet_UsesTheGivenCheckpoint(t *testing.T) {
	const verify = "/api/functions/admin/wallet-ledger/u1/verify"
	h := startServer(t, nil)
	got := h.request("GET", verify+"?checkpoint=AQJrMQ", "", asAdmin)
	if got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"status":"failed"`) || !strings.Contains(got.body, `"seq":null`) {
		t.Errorf("got %d %s, want 200 with the failed report", got.StatusCode, got.body)
	}
	if calls := h.fakes.calls(); len(calls) != 1 || !strings.Contains(calls[0], "AQJrMQ") {
		t.Errorf("got calls %v, want one with the checkpoint", calls)
	}
	if got := h.request("GET", verify+"?checkpoint="+strings.Repeat("A", 2049), "", asAdmin); got.StatusCode != http.StatusBadRequest {
		t.Errorf("oversized checkpoint: got %d %s, want 400", got.StatusCode, got.body)
	}
}
