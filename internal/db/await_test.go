package db_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
)

// A server that accepts connections but never responds must not delay a start for longer
// than the maximum wait.
func TestAwait_TimesOutWhenTheServerNeverResponds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log bytes.Buffer
	began := time.Now()
	err = db.Await(t.Context(), "postgres://u:hidden-password@"+l.Addr().String()+"/d?sslmode=disable", time.Second, slog.New(slog.NewTextHandler(&log, nil)))
	if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || !strings.Contains(err.Error(), "did not respond within 1s") {
		t.Errorf("got error %v, want an unavailable fault after 1s", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("Await took %v, want at most 8s", took)
	}
	if strings.Contains(log.String()+err.Error(), "hidden-password") {
		t.Errorf("got the log %s and error %v, want both without the password", &log, err)
	}
}
