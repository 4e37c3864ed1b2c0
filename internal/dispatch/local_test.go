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

// A panic is a failure like any other: the work is tried again after a pause,
// other work goes on, and the log tells where it was but not its value.
func TestLocal_OutlivesAPanic(t *testing.T) {
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
			t.Errorf("%d tries, %d of other work", tries, others)
		}
		if text := log.String(); strings.Contains(text, "a secret") || strings.Count(text, "stack=") != 2 {
			t.Errorf("log: %s", text)
		}
	})
}
