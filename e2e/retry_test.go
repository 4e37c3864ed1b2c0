package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/randtest"
)

// request is a request that moves money, with its idempotency key.
type request struct {
	path, key, body string

	mu       sync.Mutex
	response []byte // nil: no response yet
}

// carryOut sends the request until it succeeds. The server rejects the request while another
// worker sends it.
func (e *request) carryOut(ctx context.Context, s *server) error {
	for {
		status, response, err := s.keyed(e.path, e.key, e.body)
		switch {
		case err != nil:
			return err
		case status == http.StatusConflict && strings.Contains(string(response), `"request_in_progress"`):
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
				continue
			}
		case status != http.StatusCreated:
			return fmt.Errorf("%s: got status %d %s, want 201", e.key, status, response)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.response != nil && !bytes.Equal(e.response, response) {
			return fmt.Errorf("%s: got response %s, then %s, want the same twice", e.key, e.response, response)
		}
		e.response = response
		return nil
	}
}

// TestLedger_RepeatedTransactionsApplyOnce sends deposits, withdrawals and purchases to the
// instances in rotation. Concurrently it checks the sum of all accounts.
func TestLedger_RepeatedTransactionsApplyOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		r := randtest.New(t)
		servers := on.instances(t, 2)
		const users, purchases = 8, 100
		for i := range users {
			servers[0].deposit(fmt.Sprint("u", i), 10_000_000)
		}
		listings := servers[0].list("seller", purchases, 1_000)
		errands := make([]*request, 500)
		for i := range errands {
			user := fmt.Sprint("u", r.IntN(users))
			e := &request{path: ledgerPath + user + "/entries", key: fmt.Sprint("request ", i)}
			switch {
			case i < purchases:
				e.path, e.body = "/api/listings/"+listings[i]+"/purchase", `{"buyerId":"`+user+`"}`
			default:
				e.body = fmt.Sprintf(`{"kind":%q,"currency":"USD","amount":%d}`, []string{"deposit", "withdrawal"}[i%2], 1+r.IntN(1_000))
			}
			errands[i] = e
		}
		work := make(chan *request, 2*len(errands))
		for _, i := range r.Perm(2 * len(errands)) {
			work <- errands[i%len(errands)]
		}
		close(work)
		watching, stop := context.WithCancel(t.Context())
		db := servers[0].open()
		var watch, workers sync.WaitGroup
		watch.Go(func() { watchSum(watching, t, db) })
		for n := range 20 {
			workers.Go(func() {
				for e := range work {
					if err := e.carryOut(t.Context(), servers[n%len(servers)]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		stop()
		watch.Wait()
		if n := rows(t, db, `SELECT count(*) FROM wallet_transaction WHERE idempotency_key LIKE 'request %'`); n[0] != "500" {
			t.Errorf("got %s applied requests, want 500", n)
		}
		servers[0].verified()
	})
}

// watchSum checks the sum of all accounts and entries until ctx ends.
func watchSum(ctx context.Context, t *testing.T, db *sql.DB) {
	const query = `SELECT CAST((SELECT coalesce(sum(balance), 0) FROM wallet_account) AS bigint), CAST((SELECT coalesce(sum(amount), 0) FROM wallet_entry) AS bigint)`
	for looks := 1; ; looks++ {
		if sums, err := tryRows(db, query); err != nil || sums[0] != "0|0" {
			t.Errorf("read %d: got the sums %v, error %v, want 0|0", looks, sums, err)
		}
		if ctx.Err() != nil {
			t.Logf("read the sums %d times", looks)
			return
		}
	}
}
