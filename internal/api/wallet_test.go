package api

import (
	"net/http"
	"strings"
	"testing"
)

const walletOfU = "/api/functions/admin/wallet-ledger/u1/entries"

func (h *harness) order(body, key string) asked {
	return h.ask("POST", walletOfU, body, asAdmin, header("Idempotency-Key: "+key))
}

func TestWalletEntries_TakeOneBodyForEachKind(t *testing.T) {
	h := start(t, nil)
	for _, body := range []string{
		`{"kind":"deposit","currency":"USD","amount":1000}`,
		`{"kind":"withdrawal","currency":"JPY","amount":1,"note":"paid out"}`,
		`{"kind":"correction","currency":"USD","amount":-5,"note":"charged twice"}`,
		`{"kind":"correction","reverses":"17"}`,
	} {
		if got := h.order(body, body); got.StatusCode != http.StatusCreated {
			t.Errorf("%s: %d %s", body, got.StatusCode, got.body)
		}
	}
	asked := h.fakes.calls()
	if len(asked) != 4 || !strings.Contains(asked[0], `"Scope":"POST /api/functions/admin/wallet-ledger/{userId}/entries admin u1"`) || !strings.Contains(asked[3], `"Reverses":17`) {
		t.Errorf("ordered %v", asked)
	}
}

func TestWalletEntries_RefuseWhatIsNoOrder(t *testing.T) {
	h := start(t, nil)
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
		got := h.order(body, "k")
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, `"pointer":"`+pointer+`"`) {
			t.Errorf("%s: %d %s, want %s", body, got.StatusCode, got.body, pointer)
		}
		if n := strings.Count(got.body, `"pointer":`); n != 1 {
			t.Errorf("%s has one fault, and is told of %d: %s", body, n, got.body)
		}
	}
	h.refuses(http.StatusForbidden, "forbidden", h.ask("POST", walletOfU, `{}`, asPlatform, header("Idempotency-Key: k")))
}

func TestVerifyWallet_ComparesWithTheCheckpointThatIsGiven(t *testing.T) {
	const verify = "/api/functions/admin/wallet-ledger/u1/verify"
	h := start(t, nil)
	got := h.ask("GET", verify+"?checkpoint=AQJrMQ", "", asAdmin)
	if got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"status":"failed"`) || !strings.Contains(got.body, `"seq":null`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if asked := h.fakes.calls(); len(asked) != 1 || !strings.Contains(asked[0], "AQJrMQ") {
		t.Errorf("asked %v", asked)
	}
	if got := h.ask("GET", verify+"?checkpoint="+strings.Repeat("A", 2049), "", asAdmin); got.StatusCode != http.StatusBadRequest {
		t.Errorf("an endless checkpoint: %d %s", got.StatusCode, got.body)
	}
}
