package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/pgtest"
)

// TestPooler_InstancesShareRun uses two instances. The pooler has fewer sessions than either
// instance has connections.
func TestPooler_InstancesShareRun(t *testing.T) {
	t.Parallel()
	pg := pgtest.Shared(t)
	direct := pg.NewDatabase(t)
	pooled := pg.StartPooler(t, 6).Through(t, direct)
	c := newClusterWith(t, 2_000, []string{direct, direct}, "DATABASE_URL="+pooled, "DATABASE_DIRECT_URL="+direct)
	heard := listen(t, direct)
	c.markets.wait.Store(int64(100 * time.Millisecond))
	c.begin()
	c.share(c.open())
	if woken := heard(); len(woken) < len(c.servers) {
		t.Errorf("got wake notifications from %v, want both instances", woken)
	}
	c.estimated(slots)
	for _, s := range c.servers {
		for _, trouble := range []string{"level=ERROR", "listening failed"} {
			if contains(s.log, trouble) {
				t.Errorf("the log contains %q, want no such message", trouble)
			}
		}
	}
	c.stopAll()
}

// listen records the senders of wake notifications. The returned function stops the recording and
// returns the names of the senders.
func listen(t *testing.T, url string) (heard func() map[string]bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err == nil {
		_, err = conn.Exec(ctx, `LISTEN public_assay_look`)
	}
	if err != nil {
		t.Fatal(err)
	}
	woken := map[string]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				return
			}
			from, _, _ := strings.Cut(n.Payload, " ")
			woken[from] = true
		}
	}()
	return func() map[string]bool {
		cancel()
		<-done
		_ = conn.Close(context.WithoutCancel(ctx)) // the read was cancelled
		return woken
	}
}
