package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/randtest"
)

// pushLoad is a group of users who push an inventory repeatedly. A fifth of the rows is new
// each time.
type pushLoad struct {
	c     *cluster
	names []string
	every time.Duration // interval between pushes of a user, even if a push takes longer

	mu     sync.Mutex
	failed []string
}

const (
	pushers      = 8
	pushedRows   = 600
	replacedRows = pushedRows / 5
	restart      = 50 * time.Millisecond // interval between requests to refresh; long enough to cause no load
)

// pusher is a user's inventory.
type pusher struct {
	user   string
	random *rand.Rand
	rows   []asset
	next   int // number of the next asset
}

func (l *pushLoad) newPusher(n int, seed uint64) *pusher {
	p := &pusher{user: fmt.Sprint("user", n), random: rand.New(rand.NewPCG(seed, uint64(n)))}
	for range pushedRows {
		p.rows = append(p.rows, p.asset(l.names))
	}
	return p
}

func (p *pusher) asset(names []string) asset {
	p.next++
	return asset{AssetID: fmt.Sprint(p.user, "-", p.next), MarketHashName: names[p.random.IntN(len(names))]}
}

// change replaces a fifth of the rows. Half of them get a new asset, and the others get a new
// name.
func (p *pusher) change(names []string) {
	for i, at := range p.random.Perm(len(p.rows))[:replacedRows] {
		if i%2 == 0 {
			p.rows[at] = p.asset(names)
		} else {
			p.rows[at].MarketHashName = names[p.random.IntN(len(names))]
		}
	}
}

// run pushes for the given time. It returns the duration of each push, measured from its
// scheduled time.
func (l *pushLoad) run(all []*pusher, lasts time.Duration) (took []time.Duration) {
	var running sync.WaitGroup
	begin := time.Now()
	for n, p := range all {
		running.Go(func() {
			s := l.c.servers[n%len(l.c.servers)]
			for due := begin.Add(l.every * time.Duration(n) / pushers); due.Before(begin.Add(lasts)); due = due.Add(l.every) {
				time.Sleep(time.Until(due))
				p.change(l.names)
				_, err := s.tryPush(p.user, 730, p.rows)
				l.mu.Lock()
				if took = append(took, time.Since(due)); err != nil {
					l.failed = append(l.failed, err.Error())
				}
				l.mu.Unlock()
			}
		})
	}
	running.Wait()
	return took
}

func percentile(of []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// TestDeadlock_PushesDuringRefresh pushes inventories of eight users to three instances,
// alternately with and without concurrent refreshes. Each push replaces a fifth of the rows.
// The server uses PostgreSQL's default deadlock_timeout, because a shorter one would hide the
// duration of a deadlock.
func TestDeadlock_PushesDuringRefresh(t *testing.T) {
	refreshing := 9 * time.Second
	if randtest.Long() {
		refreshing = 10 * time.Minute
	} else {
		t.Parallel() // short mode does not check the push times
	}
	server := pgtest.Start(t, pgtest.Options{})
	url := server.NewDatabase(t)
	c := newCluster(t, 1_000, url, url, url)
	load := &pushLoad{c: c, names: c.markets.Names(), every: 400 * time.Millisecond}
	seed := randtest.Seed(t)
	var all []*pusher
	for n := range pushers {
		p := load.newPusher(n, seed)
		c.servers[n%len(c.servers)].push(p.user, 730, p.rows)
		all = append(all, p)
	}
	c.awaitPriced()

	var alone, beside []time.Duration
	const turn = 3 * time.Second
	for left := refreshing; left > 0; left -= turn {
		alone = append(alone, load.run(all, turn/3)...)
		enough := make(chan struct{})
		var refreshes sync.WaitGroup
		refreshes.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
					c.begin() // or joins the current run
					time.Sleep(restart)
				}
			}
		})
		beside = append(beside, load.run(all, turn)...)
		close(enough)
		refreshes.Wait()
		c.ended(c.runs[len(c.runs)-1])
	}
	c.awaitPriced()
	deadlocks := bytes.Count(server.Log(t), []byte("deadlock detected"))
	t.Logf("%d refreshes, %d concurrent pushes: p50 %v, p95 %v; %d without: p50 %v, p95 %v; %d deadlocks",
		len(c.runs), len(beside), percentile(beside, 50), percentile(beside, 95), len(alone), percentile(alone, 50), percentile(alone, 95), deadlocks)
	if deadlocks > 0 {
		t.Errorf("got %d deadlocks, want none", deadlocks)
	}
	if len(load.failed) > 0 {
		t.Errorf("got %d failed pushes, the first with %s, want none", len(load.failed), load.failed[0])
	}
	if len(c.runs) < 3 {
		t.Errorf("got %d refreshes during the pushes, want more", len(c.runs))
	}
	if slack := 1.5; randtest.Long() && float64(percentile(beside, 95)) > slack*float64(percentile(alone, 95)) {
		t.Errorf("p95 of a push: got %v during refreshes and %v without, want at most factor %.1f", percentile(beside, 95), percentile(alone, 95), slack)
	}
	checkRows(t, c.server, pushers)
	checkInvariants(t, c.open())
}
