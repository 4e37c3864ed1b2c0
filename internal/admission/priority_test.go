package admission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPriority_WorkRestsOnlyBesideRequests(t *testing.T) {
	const took = 10 * time.Millisecond
	failure := errors.New("no")
	for name, c := range map[string]struct {
		before, meanwhile, more bool
		took, rest              time.Duration
		err                     error
	}{
		"no request":                 {more: true, took: took},
		"a request that began first": {before: true, more: true, took: took, rest: restShare * took},
		"a short request meanwhile":  {meanwhile: true, more: true, took: took, rest: restShare * took},
		"a long piece":               {before: true, more: true, took: time.Minute, rest: longestRest},
		"no more work":               {before: true, took: took},
		"a failure":                  {before: true, more: true, took: took, err: failure},
	} {
		synctest.Test(t, func(t *testing.T) {
			var p Priority
			p.Begin()()
			if c.before {
				defer p.Begin()()
			}
			start := time.Now()
			more, err := p.Beside(t.Context(), func(context.Context) (bool, error) {
				if c.meanwhile {
					p.Begin()()
				}
				<-time.After(c.took)
				return c.more, c.err
			})
			if more != c.more || !errors.Is(err, c.err) {
				t.Errorf("%s: %v, %v", name, more, err)
			}
			if rest := time.Since(start) - c.took; rest != c.rest {
				t.Errorf("%s: work rests %v, want %v", name, rest, c.rest)
			}
		})
	}
}

func TestPriority_RestEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Priority
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
