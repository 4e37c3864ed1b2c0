package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPriority_WorkRestsOnlyBesideRequests(t *testing.T) {
	const took = 10 * time.Millisecond
	failure := errors.New("no")
	none, running := func(*Priority) {}, func(p *Priority) { p.Begin() }
	for name, c := range map[string]struct {
		before, meanwhile func(*Priority)
		done              bool // there is no more work
		took, rest        time.Duration
		err               error
	}{
		"no request":               {before: none, took: took},
		"a request that runs":      {before: running, took: took, rest: restShare * took},
		"a request that has ended": {before: func(p *Priority) { p.Begin()() }, took: took, rest: restShare * took},
		"a request long ago": {before: func(p *Priority) {
			p.Begin()()
			<-time.After(recent)
		}, took: took},
		"a short request meanwhile":             {before: none, meanwhile: func(p *Priority) { p.Begin()() }, took: took, rest: restShare * took},
		"requests in one of four processes":     {before: func(p *Priority) { p.Seen(4, true); p.Seen(4, false) }, took: took, rest: 4 * restShare * took},
		"four processes without requests":       {before: func(p *Priority) { p.Seen(4, false) }, took: took},
		"a request here, of four processes":     {before: func(p *Priority) { p.Seen(4, false); p.Begin() }, took: took, rest: 4 * restShare * took},
		"requests in another process, long ago": {before: func(p *Priority) { p.Seen(2, true); <-time.After(2 * recent) }, took: took},
		"a long piece":                          {before: running, took: time.Minute, rest: longestRest},
		"no more work":                          {before: running, took: took, done: true},
		"a failure":                             {before: running, took: took, err: failure},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			c.before(p)
			start := time.Now()
			more, err := p.Beside(t.Context(), func(context.Context) (bool, error) {
				if c.meanwhile != nil {
					c.meanwhile(p)
				}
				<-time.After(c.took)
				return !c.done, c.err
			})
			if more == c.done || !errors.Is(err, c.err) {
				t.Errorf("%s: %v, %v", name, more, err)
			}
			if rest := time.Since(start) - c.took; rest != c.rest {
				t.Errorf("%s: work rests %v, want %v", name, rest, c.rest)
			}
		})
	}
}

// Beside requests one piece at a time is done, and the next one begins after its rest.
func TestPriority_PiecesTakeTurnsBesideRequests(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			if busy {
				defer p.Begin()()
			}
			const took, pieces = 10 * time.Millisecond, 3
			start := time.Now()
			var working sync.WaitGroup
			for range pieces {
				working.Go(func() {
					if _, err := p.Beside(t.Context(), func(context.Context) (bool, error) {
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
				want = pieces * (1 + restShare) * took
			}
			if got := time.Since(start); got != want {
				t.Errorf("busy: %v: %d pieces end after %v, want %v", busy, pieces, got, want)
			}
			if begun := p.Begun(); begun > 1 {
				t.Errorf("%d requests", begun)
			}
		})
	}
}

func TestPriority_RestEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		defer p.Begin()()
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		if more, err := p.Beside(ctx, func(context.Context) (bool, error) {
			<-time.After(time.Millisecond)
			cancel()
			return true, nil
		}); !more || err != nil || time.Since(start) != time.Millisecond {
			t.Errorf("%v, %v after %v", more, err, time.Since(start))
		}
	})
}

func TestPriority_WorkThatWaitsForItsTurnEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPriority()
		defer p.Begin()()
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() {
			_, _ = p.Beside(t.Context(), func(context.Context) (bool, error) {
				<-time.After(time.Hour)
				return false, nil
			})
		})
		synctest.Wait()
		cancel()
		if more, err := p.Beside(ctx, func(context.Context) (bool, error) {
			t.Error("a second piece is done")
			return true, nil
		}); more || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", more, err)
		}
		working.Wait()
	})
}

// A long piece rests in its midst, in proportion to what it has done since the last
// rest, and in all no longer than totalRest.
func TestRest_InTheMidstOfAPiece(t *testing.T) {
	const step = 10 * time.Millisecond
	work := func(ctx context.Context, steps int) {
		for range steps {
			<-time.After(step)
			Rest(ctx)
		}
	}
	const many = 1_000
	for name, c := range map[string]struct {
		requests bool
		do       func(ctx context.Context, p *Priority) error
		want     time.Duration
	}{
		"without requests": {do: func(ctx context.Context, p *Priority) error {
			_, err := p.Beside(ctx, func(ctx context.Context) (bool, error) { work(ctx, 3); return true, nil })
			return err
		}, want: 3 * step},
		"beside requests": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Beside(ctx, func(ctx context.Context) (bool, error) { work(ctx, 3); return true, nil })
			return err
		}, want: 3 * (1 + restShare) * step},
		"too soon": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Beside(ctx, func(ctx context.Context) (bool, error) {
				<-time.After(stretch - 1)
				Rest(ctx)
				return false, nil
			})
			return err
		}, want: stretch - 1},
		"a piece that takes very long": {requests: true, do: func(ctx context.Context, p *Priority) error {
			_, err := p.Beside(ctx, func(ctx context.Context) (bool, error) { work(ctx, many); return false, nil })
			return err
		}, want: many*step + totalRest + restShare*step - totalRest%(restShare*step)},
		"work that mostly waits": {requests: true, do: func(ctx context.Context, p *Priority) error {
			ctx = p.Paced(ctx)
			<-time.After(time.Second)
			Rest(ctx)
			return nil
		}, want: time.Second + briefRest},
		"no piece of work": {requests: true, do: func(ctx context.Context, _ *Priority) error { work(ctx, 3); return nil }, want: 3 * step},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPriority()
			if c.requests {
				defer p.Begin()()
			}
			start := time.Now()
			if err := c.do(t.Context(), p); err != nil {
				t.Error(err)
			}
			if got := time.Since(start); got != c.want {
				t.Errorf("%s: ends after %v, want %v", name, got, c.want)
			}
		})
	}
}
