package allowance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
)

// samples lists all stored samples without their durations.
func (f *fixture) samples() []string {
	f.Helper()
	rows, err := db.Collect(f.Context(), f.DB.Read, func(r *sql.Rows, line *string) error {
		var name, result string
		var at, requests, bytes int64
		err := r.Scan(&name, &at, &result, &requests, &bytes)
		*line = fmt.Sprintf("%s %s %s %d %d", name, db.Moment(at).Format("15:04"), result, requests, bytes)
		return err
	}, `SELECT provider || '/' || host, at, result, CAST(sum(requests) AS bigint), CAST(sum(bytes) AS bigint) FROM request_sample
		GROUP BY provider, host, at, result ORDER BY provider, host, at, result`)
	f.Must(err)
	return rows
}

// Two instances count requests to the same host. A failed transaction loses nothing.
func TestStoreSamples_AddsRequestsOfAllInstances(t *testing.T) {
	each(t, func(f *fixture) {
		f.Now = time.Date(2026, 3, 1, 12, 10, 0, 0, time.UTC)
		status := http.StatusOK
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			if status != http.StatusNotModified {
				_, _ = w.Write([]byte("1234"))
			}
		}))
		t.Cleanup(server.Close)
		sampled := func() allowance.Sampled {
			c := provider.NewClient(provider.Options{
				Provider: "p", AllowHosts: []string{strings.TrimPrefix(server.URL, "http://")}, Now: func() time.Time { return f.Now }, Attempts: 1,
			})
			t.Cleanup(c.Close)
			return allowance.Sampled{Provider: "p", Host: "h", Client: c}
		}
		a, b := sampled(), sampled()
		send := func(s allowance.Sampled, answer int) {
			status = answer
			_ = s.Client.Do(t.Context(), provider.Request{URL: server.URL}, func(*provider.Response) error { return nil })
		}
		send(a, http.StatusOK)
		send(a, http.StatusNotModified)
		send(b, http.StatusOK)
		f.Must(allowance.StoreSamples(t.Context(), f.DB, []allowance.Sampled{a, b}))
		f.Is("samples of the first half hour", f.samples(), []string{"p/h 12:00 notModified 1 0", "p/h 12:00 ok 2 8"})

		f.Now = f.Now.Add(25 * time.Minute)
		send(b, http.StatusInternalServerError)
		send(b, http.StatusForbidden)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := allowance.StoreSamples(ended, f.DB, []allowance.Sampled{a, b}); !errors.Is(err, context.Canceled) {
			t.Errorf("a store without a connection: got %v, want an error", err)
		}
		for _, all := range [][]allowance.Sampled{{a}, {b}, {b}} {
			f.Must(allowance.StoreSamples(t.Context(), f.DB, all))
		}
		want := []string{"p/h 12:00 notModified 1 0", "p/h 12:00 ok 2 8", "p/h 12:30 failed 1 4", "p/h 12:30 refused 1 4"}
		f.Is("samples after a failure", f.samples(), want)

		f.Now = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC).Add(allowance.SamplesKept)
		f.Tx(allowance.DeleteOldSamples)
		f.Is("samples after 35 days", f.samples(), want[2:])
	})
}
