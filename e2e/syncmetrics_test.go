package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"assay/internal/inventory/steaminv/steaminvtest"
)

// TestMetrics_CountSyncs pushes, pulls and lists, with and without success, and checks the
// metrics.
func TestMetrics_CountSyncs(t *testing.T) {
	t.Parallel()
	steam := httptest.NewServer(&steaminvtest.Server{}) // every inventory is private
	t.Cleanup(steam.Close)
	s := onSQLite.newServer(t, "STEAM_BASE_URL="+steam.URL, "STEAM_INVENTORY_PACE=1ms")
	s.start()
	metrics := func() []string {
		t.Helper()
		status, text, err := s.call(http.MethodGet, "/metrics", nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("metrics: got status %d, error %v, want 200", status, err)
		}
		return strings.Split(string(text), "\n")
	}
	if before := metrics(); !slices.Contains(before, `assay_inventory_syncs_total{kind="pull",outcome="ok",reason=""} 0`) {
		t.Error("the metrics lack the series of successful pulls before the first pull, want it with the value 0")
	}

	item := func(i int) asset { return asset{AssetID: fmt.Sprint(i), MarketHashName: fmt.Sprint("Item ", i)} }
	s.push("u1", 730, []asset{item(1), item(2), item(3)})
	s.push("u1", 730, []asset{item(1), item(2), item(4)})
	ask := func(method, path, body string, want int) {
		t.Helper()
		status, response, err := s.call(method, path, strings.NewReader(body))
		if err != nil || status != want {
			t.Fatalf("%s: got %d %s, %v, want %d", path, status, response, err, want)
		}
	}
	ask(http.MethodPost, "/api/inventory/u1/sync", `{"appId":730,"contextId":"2","snapshotAt":"2020-01-01T00:00:00Z","items":[]}`, http.StatusConflict)
	ask(http.MethodPost, "/api/inventory/u1/sync?source=steam", "", http.StatusUnprocessableEntity)
	if status, response, err := s.offer("u1", "1", "renewed", nil); err != nil || status != http.StatusCreated {
		t.Fatalf("listing after a renewal: got %d %s, %v, want 201", status, response, err)
	}
	ask(http.MethodPut, "/api/users/u1", `{"steamId":"76561198000000001"}`, http.StatusOK)
	ask(http.MethodPost, "/api/inventory/u1/sync?source=steam", "", http.StatusConflict)
	if status, response, err := s.offer("u1", "2", "pulled", nil); err != nil || status != http.StatusServiceUnavailable && status != http.StatusConflict {
		t.Fatalf("listing after a failed pull: got %d %s, %v, want 503 or 409", status, response, err)
	}

	after := metrics()
	for _, want := range []string{
		`assay_inventory_syncs_total{kind="push",outcome="ok",reason=""} 2`,
		`assay_inventory_syncs_total{kind="push",outcome="refused",reason="snapshot_outdated"} 1`,
		`assay_inventory_syncs_total{kind="pull",outcome="refused",reason="steam_id_missing"} 1`,
		`assay_inventory_syncs_total{kind="pull",outcome="refused",reason="inventory_private"} 2`,
		`assay_inventory_syncs_total{kind="renew",outcome="ok",reason=""} 1`,
		`assay_inventory_sync_rows_total{change="added",kind="push"} 4`,
		`assay_inventory_sync_rows_total{change="removed",kind="push"} 1`,
		`assay_inventory_sync_rows_total{change="added",kind="pull"} 0`,
		`assay_inventory_sync_duration_seconds_count{kind="push"} 3`,
		`assay_inventory_sync_duration_seconds_count{kind="pull"} 3`,
		`assay_inventory_sync_duration_seconds_count{kind="renew"} 1`,
	} {
		if !slices.Contains(after, want) {
			t.Errorf("the metrics lack the line %s", want)
		}
	}
	if t.Failed() {
		for _, line := range after {
			if strings.HasPrefix(line, "assay_inventory_sync") && !strings.Contains(line, "_bucket") {
				t.Log(line)
			}
		}
	}
}
