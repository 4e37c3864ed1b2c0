package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPriority_WorkRestsAsLongAsItRanBesideRequests(t *testing.T) {
	const took = 10 * time.Millisecond
	failure := errors.New("no")
	none, running := func(*Priority) {}, func(p *Priority) { p.Write() }
	for name, c := range map[string]struct {
		before, meanwhile func(*Priority)
		done              bool // no more work
		took, rest        time.Duration
		err               error
	}{
		"no request":        {before: none, took: took},
		"a running request": {before: running, took: took, rest: restRatio * took},
		"a request before":  {before: func(p *Priority) { p.Write()() }, took: took},
		"a request during half of the piece": {before: none, meanwhile: func(p *Priority) {
			end := p.Write()
			time.AfterFunc(took/2, end)
		}, took: took, rest: restRatio * took / 2},
		"two requests at the same time":           {before: func(p *Priority) { p.Write(); p.Write() }, took: took, rest: restRatio * took},
		"requests all the time in four processes": {before: func(p *Priority) { p.ReportPeers(4, 3); p.Write() }, took: took, rest: 4 * restRatio * took},
		"requests for half of the time elsewhere": {before: func(p *Priority) { p.ReportPeers(4, 0.5) }, took: took, rest: 4 * restRatio * took / 2},
		"four processes without requests":         {before: func(p *Priority) { p.ReportPeers(4, 0) }, took: took},
		"requests in this one of four processes":  {before: func(p *Priority) { p.ReportPeers(4, 0); p.Write() }, took: took, rest: 4 * restRatio * took},
		"old requests in another process":         {before: func(p *Priority) { p.ReportPeers(2, 1); <-time.After(2 * recent) }, took: took},
		"a long piece":                            {before: running, took: time.Minute, rest: maxPieceRest},
		"a read":                                  {before: func(p *Priority) { p.Read() }, took: took, rest: restRatio * took},
		"a read and a write":                      {before: func(p *Priority) { p.Read(); p.Write() }, took: took, rest: restRatio * took},
		"a long read":                             {before: func(p *Priority) { p.Read() }, took: 2 * maxRead, rest: restRatio * maxRead},
		"no more work":                            {before: running, took: took, done: true},
		"a failure":                               {before: running, took: took, err: failure},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			c.before(p)
			start := time.Now()
			more, err := p.Run(t.Context(), func(context.Context) (bool, error) {
				if c.meanwhile != nil {
					c.meanwhile(p)
				}
				<-time.After(c.took)
				return !c.done, c.err
			})
			if more == c.done || !errors.Is(err, c.err) {
				t.Errorf("%s: got more work %v, error %v; want %v, %v", name, more, err, !c.done, c.err)
			}
			if rest := time.Since(start) - c.took; rest != c.rest {
				t.Errorf("%s: got a rest of %v, want %v", name, rest, c.rest)
			}
		})
	}
}

// While writes run, the next piece starts after the rest of the previous piece.
func TestPriority_RunsOnePieceAtATimeDuringWrites(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			if busy {
				defer p.Write()()
			}
			const took, pieces = 10 * time.Millisecond, 3
			start := time.Now()
			var working sync.WaitGroup
			for range pieces {
				working.Go(func() {
					if _, err := p.Run(t.Context(), func(context.Context) (bool, error) {
						<-time.After(took)
						return true, nil
					}); err != nil {
						t.Error(err)
					}
				})
			}
			working.Wait()
			want := took
			if busy {
				want = pieces * (1 + restRatio) * took
			}
			if got := time.Since(start); got != want {
				t.Errorf("busy %v: %d pieces took %v, want %v", busy, pieces, got, want)
			}
			if busy && p.WriteTime() != want || !busy && p.WriteTime() != 0 {
				t.Errorf("busy %v: got writes for %v, want them for all or no time", busy, p.WriteTime())
			}
		})
	}
}

// During writes, a piece takes a turn among several processes, and keeps it while it rests.
func TestPriority_TakesTurns(t *testing.T) {
	for name, c := range map[string]struct {
		writes    bool
		processes int
		turns     int
	}{
		"writes in several processes": {writes: true, processes: 3, turns: 1},
		"writes in one process":       {writes: true, processes: 1},
		"no writes":                   {processes: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			p.ReportPeers(c.processes, 0)
			turns, open := 0, false
			p.TakeTurns(func(context.Context) func() {
				turns++
				open = true
				return func() { open = false }
			})
			if c.writes {
				defer p.Write()()
			}
			check := time.AfterFunc(15*time.Millisecond, func() {
				if c.turns > 0 && !open {
					t.Errorf("%s: got the end of the turn before the end of the rest, want it after", name)
				}
			})
			defer check.Stop()
			if _, err := p.Run(t.Context(), func(context.Context) (bool, error) {
				<-time.After(10 * time.Millisecond)
				return true, nil
			}); err != nil {
				t.Error(err)
			}
			if turns != c.turns || open {
				t.Errorf("%s: got %d turns, open %v; want %d, ended", name, turns, open, c.turns)
			}
		})
	}
}

func TestPriority_RestEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		defer p.Write()()
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		if more, err := p.Run(ctx, func(context.Context) (bool, error) {
			<-time.After(time.Millisecond)
			cancel()
			return true, nil
		}); !more || err != nil || time.Since(start) != time.Millisecond {
			t.Errorf("got more work %v, error %v after %v; want true, none after 1ms", more, err, time.Since(start))
		}
	})
}

func TestPriority_WaitForAnotherPieceEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		defer p.Write()()
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() {
			_, _ = p.Run(t.Context(), func(context.Context) (bool, error) {
				<-time.After(time.Hour)
				return false, nil
			})
		})
		synctest.Wait()
		cancel()
		if more, err := p.Run(ctx, func(context.Context) (bool, error) {
			t.Error("the second piece ran, want it skipped")
			return true, nil
		}); more || !errors.Is(err, context.Canceled) {
			t.Errorf("got more work %v, error %v; want false, %v", more, err, context.Canceled)
		}
		working.Wait()
	})
}

// While writes run, other pieces wait, also shortly after the last write.
func TestPriority_IsBusyForASecondAfterAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		if p.Busy() {
			t.Error("before the first write: got busy, want idle")
		}
		p.Write()()
		<-time.After(recent - 1)
		if !p.Busy() {
			t.Error("just before a second has passed: got idle, want busy")
		}
		<-time.After(1)
		if p.Busy() {
			t.Error("a second after the write: got busy, want idle")
		}
	})
}

// Reads only cause rests: pieces run at the same time, and other processes do not hear of them.
func TestPriority_ReadsDoNotLimitPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		end := p.Read()
		<-time.After(maxRead / 2)
		if p.Busy() || p.WriteTime() != 0 {
			t.Errorf("during a read: got busy %v, writes for %v, want false and 0s", p.Busy(), p.WriteTime())
		}
		end()
		end() // a second call changes nothing
		if got := p.requestTime(); got != maxRead/2 {
			t.Errorf("after the read: got requests for %v, want %v", got, maxRead/2)
		}
	})
}

// A long piece rests in proportion to its work since the last rest. All its rests together
// take at most maxTotalRest.
func TestRest_PausesALongPiece(t *testing.T) {
	const step = 10 * time.Millisecond
	work := func(ctx context.Context, steps int) {
		for range steps {
			<-time.After(step)
			Yield(ctx)
		}
	}
	const many = 2_000
	for name, c := range map[string]struct {
		requests bool
		do       func(ctx context.Context, p *Priority) error
		want     time.Duration
	}{
		"without requests": {do: func(ctx context.Context, p *Priority) error {
			_, err := p.Run(ctx, func(ctx context.Context) (bool, error) { work(ctx, 3); return true, nil })
			return err
		}, want: 3 * step},
		"with requests": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Run(ctx, func(ctx context.Context) (bool, error) { work(ctx, 3); return true, nil })
			return err
		}, want: 3 * (1 + restRatio) * step},
		"less work than minWork": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Run(ctx, func(ctx context.Context) (bool, error) {
				<-time.After(minWork - 1)
				Yield(ctx)
				return false, nil
			})
			return err
		}, want: minWork - 1},
		"a very long piece": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Run(ctx, func(ctx context.Context) (bool, error) { work(ctx, many); return false, nil })
			return err
		}, want: many*step + maxTotalRest},
		"work that mostly waits": {requests: true, do: func(ctx context.Context, p *Priority) error {
			ctx = p.Paced(ctx)
			<-time.After(time.Second)
			Yield(ctx)
			return nil
		}, want: time.Second + maxPacedRest},
		"no piece of work": {requests: true, do: func(ctx context.Context, _ *Priority) error { work(ctx, 3); return nil }, want: 3 * step},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			if c.requests {
				defer p.Write()()
			}
			start := time.Now()
			if err := c.do(t.Context(), p); err != nil {
				t.Error(err)
			}
			if got := time.Since(start); got != c.want {
				t.Errorf("%s: took %v, want %v", name, got, c.want)
			}
		})
	}
}
