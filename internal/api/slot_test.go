package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"assay/internal/admission"
	"assay/internal/view"
)

// gatedItems is an ItemReader that takes an admission slot.
type gatedItems struct {
	*fakes
	gate *admission.Gate
	t    *testing.T
}

func (s gatedItems) Items(ctx context.Context, f view.ItemFilter, cursor string, limit int) (view.Page[view.PricedItem], error) {
	leave, err := s.gate.Enter(ctx, admission.Search)
	if err != nil {
		return view.Page[view.PricedItem]{}, err
	}
	leave()
	if isFree(s.t, s.gate) {
		s.t.Error("the slot is free before the response is encoded")
	}
	return s.fakes.Items(ctx, f, cursor, limit)
}

func isFree(t *testing.T, g *admission.Gate) bool {
	t.Helper()
	leave, err := g.Enter(t.Context(), admission.Search)
	if err != nil {
		return false
	}
	leave()
	return true
}

// hookedRecorder calls before when the response begins.
type hookedRecorder struct {
	*httptest.ResponseRecorder
	before func()
}

func (s hookedRecorder) WriteHeader(status int) {
	s.before()
	s.ResponseRecorder.WriteHeader(status)
}

func TestServe_HoldsTheReadSlotUntilTheResponseBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.New(1)
		h := newHarness(t, func(d *Deps) { d.Items = gatedItems{d.Items.(*fakes), gate, t} })
		r := httptest.NewRequest(http.MethodGet, "/api/prices/items", nil)
		r.Header.Set("Authorization", "Bearer "+adminToken)
		w := hookedRecorder{httptest.NewRecorder(), func() {
			if !isFree(t, gate) {
				t.Error("the slot is held while the response is sent")
			}
		}}
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("got %d %s, want 200", w.Code, w.Body)
		}
	})
}
