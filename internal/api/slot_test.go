package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestServe_HoldsTheReadSlotUntilTheResponseBegins(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *harness) {
		op, _, _ := h.api.routes.find(http.MethodGet, "/api/prices/items")
		read := op.serve
		op.serve = func(c *call) (any, error) {
			list, err := read(c)
			if isFree(t, h.deps.Gate) {
				t.Error("before the response is encoded: got a free slot, want it held")
			}
			return list, err
		}
		w := hookedRecorder{httptest.NewRecorder(), func() {
			if !isFree(t, h.deps.Gate) {
				t.Error("while the response is sent: got a held slot, want it free")
			}
		}}
		r := h.newRequest(http.MethodGet, "/api/prices/items", nil)
		r.Header.Set("Authorization", "Bearer "+adminToken)
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("got %d %s, want 200", w.Code, w.Body)
		}
	})
}

// A verification reads a whole chain. Without an admission slot, many parallel
// verifications delay health checks by seconds.
func TestVerifyWallet_WaitsForASlot(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *harness) {
		const verify = "/api/functions/admin/wallet-ledger/u1/verify"
		leave := h.occupyGate()
		h.wantProblem(http.StatusServiceUnavailable, "busy", h.request("GET", verify, "", asAdmin))
		leave()
		if got := h.request("GET", verify, "", asAdmin); got.StatusCode != http.StatusOK {
			t.Errorf("with a free slot: got %d %s, want 200", got.StatusCode, got.body)
		}
	})
}

// A write must not need an admission slot to read its own result. Otherwise a successful
// write gets 503, and its retry gets 409.
func TestServe_WritesNeedNoReadSlot(t *testing.T) {
	var operations []operation
	inBubble(t, nil, func(_ *testing.T, h *harness) {
		defer h.occupyGate()()
		h.wantProblem(http.StatusServiceUnavailable, "busy", h.request("GET", "/api/prices/items/x", "", asAdmin))
		operations = h.api.routes.operations
	})
	for _, op := range operations {
		if op.method == http.MethodGet || op.path == "/api/prices/quotes" { // a read with a body
			continue
		}
		inBubble(t, nil, func(t *testing.T, h *harness) {
			defer h.occupyGate()()
			path, body := example(op)
			if got := h.request(op.method, path, body, asAdmin); got.StatusCode >= 300 {
				t.Errorf("%s %s: got %d %s, want success", op.method, path, got.StatusCode, got.body)
			}
		})
	}
}
