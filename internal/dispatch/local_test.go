package dispatch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Work that panics is retried like work that fails. Other work continues. The log
// contains the stack but not the panic value.
func TestLocal_RetriesAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		tries, others := 0, 0
		workers := []Worker{
			{Kind: "bad", Slots: 1, Work: func(context.Context) (bool, error) {
				if tries++; tries < 3 {
					panic(errors.New("a secret"))
				}
				return false, nil
			}},
			{Kind: "good", Slots: 1, Work: func(context.Context) (bool, error) {
				others++
				return false, nil
			}},
		}
		l := NewLocal(LocalOptions{Workers: workers, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		done := make(chan struct{})
		go func() {
			l.Run(ctx)
			close(done)
		}()
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		if tries < 3 || others < 2 {
			t.Errorf("got %d attempts and %d calls of other work, want at least 3 and 2", tries, others)
		}
		if text := log.String(); strings.Contains(text, "a secret") || strings.Count(text, "stack=") != 2 {
			t.Errorf("got log %s, want two stacks and no panic value", text)
		}
	})
}
