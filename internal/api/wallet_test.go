package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

const (
	entriesPath = "/api/functions/admin/wallet-ledger/u1/entries"
	balancePath = "/api/functions/admin/wallet-ledger/u1/balance"
)

func (h *harness) postEntry(body, key string) result {
	return h.request("POST", entriesPath, body, asAdmin, header("Idempotency-Key: "+key))
}

func TestWalletEntries_AcceptEachKind(t *testing.T) {
	h := startServer(t, nil)
	if got := h.postEntry(`{"kind":"deposit","currency":"JPY","amount":1}`, "funds"); got.StatusCode != http.StatusCreated {
		t.Fatalf("deposit: got %d %s, want 201", got.StatusCode, got.body)
	}
	scope := WalletScopes("u1")[0]
	deposit, err := wallet.PostedUnder(t.Context(), h.store, scope, "funds")
	h.must(err)
	for _, body := range []string{
		`{"kind":"deposit","currency":"USD","amount":1000}`,
		`{"kind":"deposit","currency":"JPY","amount":1}`,
		`{"kind":"withdrawal","currency":"JPY","amount":1,"note":"paid out"}`,
		`{"kind":"correction","currency":"USD","amount":-5,"note":"charged twice"}`,
		fmt.Sprintf(`{"kind":"correction","reverses":"%d"}`, deposit),
	} {
		if got := h.postEntry(body, body); got.StatusCode != http.StatusCreated {
			t.Errorf("%s: got %d %s, want 201", body, got.StatusCode, got.body)
		}
		if id, err := wallet.PostedUnder(t.Context(), h.store, scope, body); err != nil || id == 0 {
			t.Errorf("%s: got transaction %d, %v under its scope and key; want one", body, id, err)
		}
	}
	if got := h.request("GET", balancePath, "", asAdmin); !strings.Contains(got.body, `"currency":"JPY","balance":0,`) || !strings.Contains(got.body, `"currency":"USD","balance":102891,`) {
		t.Errorf("got balances %s, want 0 JPY and 102891 USD", got.body)
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
	var first audit.Report
	h.must(json.Unmarshal([]byte(h.request("GET", verify, "", asAdmin).body), &first))
	path := verify + "?checkpoint=" + *first.Checkpoint
	if got := h.request("GET", path, "", asAdmin); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"status":"ok"`) {
		t.Errorf("got %d %s, want 200 with an ok report", got.StatusCode, got.body)
	}
	h.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`)
	if got := h.request("GET", path, "", asAdmin); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"status":"failed"`) || !strings.Contains(got.body, `"seq":null`) {
		t.Errorf("got %d %s, want 200 with the failed report", got.StatusCode, got.body)
	}
	h.wantProblem(http.StatusBadRequest, "invalid_checkpoint", h.request("GET", strings.Replace(path, "u1", "u2", 1), "", asAdmin))
	if got := h.request("GET", verify+"?checkpoint="+strings.Repeat("A", 2049), "", asAdmin); got.StatusCode != http.StatusBadRequest {
		t.Errorf("oversized checkpoint: got %d %s, want 400", got.StatusCode, got.body)
	}
}
