package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"assay/internal/randtest"
)

// traffic moves money while the ledger is verified.
type traffic struct {
	servers  []*server
	buyers   []string
	listings chan string
	trades   chan string   // trades that are neither completed nor reversed
	turns    chan struct{} // tokens for operations; each verification adds some
	done     [4]atomic.Int64
}

// These are the operations.
const (
	deposits = iota
	purchases
	handovers
	reversals
)

// run executes operations until ctx ends. A server may be unavailable.
func (f *traffic) run(ctx context.Context, r *rand.Rand, worker int) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-f.turns:
		}
		s := f.servers[r.IntN(len(f.servers))]
		buyer, key := f.buyers[r.IntN(len(f.buyers))], fmt.Sprint(worker, " ", n)
		switch kind := r.IntN(4); kind {
		case deposits:
			body := fmt.Sprintf(`{"kind":%q,"currency":"USD","amount":%d}`, []string{"deposit", "withdrawal"}[r.IntN(2)], 1+r.IntN(1_000))
			if status, _, err := s.keyed(ledgerPath+buyer+"/entries", key, body); err == nil && status == http.StatusCreated {
				f.done[kind].Add(1)
			}
		case purchases:
			f.purchase(s, buyer, key)
		default:
			f.move(s, kind)
		}
	}
}

func (f *traffic) purchase(s *server, buyer, key string) {
	var listing string
	select {
	case listing = <-f.listings:
	default:
		return // all listings are sold
	}
	status, response, err := s.buy(listing, buyer, key)
	var made trade
	if err == nil && status == http.StatusCreated && json.Unmarshal(response, &made) == nil {
		f.trades <- made.ID
		f.done[purchases].Add(1)
	}
}

// move completes a trade, which then settles, or reverses it.
func (f *traffic) move(s *server, kind int) {
	select {
	case id := <-f.trades:
		how := map[int]string{handovers: "complete", reversals: "reverse"}[kind]
		if status, _, err := s.call(http.MethodPost, "/api/trades/"+id+"/"+how, nil); err == nil && status == http.StatusOK {
			f.done[kind].Add(1)
		}
	default:
	}
}

// TestVerify_HasNoFalseAlarms verifies users and the whole ledger while money moves, fee rules
// change, and restarts rotate keys.
func TestVerify_HasNoFalseAlarms(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		seed := randtest.Seed(t)
		r := rand.New(rand.NewPCG(seed, 0))
		path, write := feeFile(t, feeDocument(500))
		servers := on.instances(t, 2, "PAYMENT_FEE_RULES="+path, "TRADE_HOLD=1s", keysFrom(0))
		f := &traffic{servers: servers, buyers: []string{"b0", "b1", "b2", "b3"}, turns: make(chan struct{}, 20)}
		for _, b := range f.buyers {
			servers[0].deposit(b, 1_000_000)
		}
		count := randtest.Count(40, 2_000)
		f.listings, f.trades = make(chan string, count), make(chan string, count)
		for n := range 4 {
			listed := servers[0].list(fmt.Sprint("s", n), count/4, 500+n)
			for _, id := range listed[1:] {
				f.listings <- id
			}
			servers[0].bought(listed[0], "b0")
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		for n := range 3 {
			wg.Go(func() { f.run(ctx, rand.New(rand.NewPCG(seed, uint64(n+1))), n) })
		}
		names := append(slices.Clone(f.buyers), "s0", "s1", "s2", "s3")
		verifications := randtest.Count(30, 1_000)
		for n := range verifications {
			s := servers[n%len(servers)]
			switch {
			case n%20 == 7:
				write(anyRules(r, n))
				if status, response := s.postFees("/refresh?allowLargeChange=1", ""); status != http.StatusOK {
					t.Errorf("change of the fee rules: got %d %v, want 200", status, response)
				}
			case n%25 == 11:
				f.rotate(s, n/25+1)
			}
			for range cap(f.turns) - len(f.turns) {
				f.turns <- struct{}{}
			}
			f.verify(t, s, n, names[r.IntN(len(names))])
		}
		stop()
		wg.Wait()
		servers[0].verified()
		settled := rows(t, servers[0].open(), `SELECT count(*) FROM trade WHERE state = 'settled'`)
		t.Logf("%d verifications; %d deposits and withdrawals, %d purchases, %d handovers, %d reversals, %v settled",
			verifications, f.done[0].Load(), f.done[1].Load(), f.done[2].Load(), f.done[3].Load(), settled)
	})
}

// verify verifies the whole ledger in one of five calls, and a user's wallet in the others.
func (f *traffic) verify(t *testing.T, s *server, n int, name string) {
	t.Helper()
	if n%5 == 0 {
		s.verified()
		return
	}
	var v struct {
		verification
		Failures json.RawMessage
	}
	if s.get(ledgerPath+url.PathEscape(name)+"/verify", &v); !v.OK {
		t.Fatalf("verification %d, of %s: got %s with the failed checks %v, want ok: %s", n, name, v.Status, v.failed(), v.Failures)
	}
}

// rotate restarts a server so that it signs with another of the shared keys.
func (f *traffic) rotate(s *server, n int) {
	s.t.Helper()
	if _, err := s.stop(); err != nil {
		s.t.Error(err)
	}
	s.env = append(slices.Clip(s.env), keysFrom(n))
	s.start()
}

// keysFrom returns a setting with three keys. The n-th key signs.
func keysFrom(n int) string {
	var keys []string
	for i := range 3 {
		k := (n + i) % 3
		keys = append(keys, fmt.Sprintf("k%d:%s", k, strings.Repeat(fmt.Sprintf("%02x", k+1), 32)))
	}
	return "WALLET_LEDGER_KEY=" + strings.Join(keys, ",")
}
