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

// A server that accepts connections and never answers must not hold a start for longer
// than it may wait, nor end it without one.
func TestAwait_CountsASilentServerAsOneThatDoesNotAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log bytes.Buffer
	began := time.Now()
	err = db.Await(t.Context(), "postgres://u:hidden-password@"+l.Addr().String()+"/d?sslmode=disable", time.Second, slog.New(slog.NewTextHandler(&log, nil)))
	if f := fault.Of(err); f == nil || f.Kind != fault.Unavailable || !strings.Contains(err.Error(), "did not answer within 1s") {
		t.Errorf("err %v", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	if strings.Contains(log.String()+err.Error(), "hidden-password") {
		t.Errorf("the password is shown: %s %v", &log, err)
	}
}
