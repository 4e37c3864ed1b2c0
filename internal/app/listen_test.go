package app

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestListen_AnAddressInUseNamesTheFix(t *testing.T) {
	l, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, err = listen(t.Context(), l.Addr().String())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "set LISTEN_ADDR") {
		t.Errorf("got error %v, want a hint to LISTEN_ADDR", err)
	}
}
