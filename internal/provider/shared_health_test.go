package provider

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestStanding_IsToldWhenTheBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{}
		failing := false
		c, _ := newFake(Options{Allowance: a, Attempts: 1}, func(int) (*http.Response, error) {
			if failing {
				return reply(500, ""), nil
			}
			return reply(200, "ok"), nil
		})
		ask := func(n int) {
			for range n {
				_ = c.Do(t.Context(), get, discard)
			}
		}
		is := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(a.standing, want) {
				t.Errorf("%s: told %q, want %q", what, a.standing, want)
			}
			a.standing = nil
		}
		ask(3)
		is("the first answer of a process, since another one may have said otherwise", "up")
		failing = true
		ask(breakAfter - 1)
		is("failures")
		a.deaf = true
		ask(1)
		is("the last of them, which nobody could be told", "down: it keeps failing: server")
		a.deaf = false
		time.Sleep(DefaultPause)
		ask(1)
		is("a failed probe says it again", "down: it keeps failing: server")
		time.Sleep(2 * DefaultPause)
		ask(1)
		is("and no other one does")
		failing = false
		time.Sleep(4 * DefaultPause)
		ask(2)
		is("the first answer after it", "up")
		time.Sleep(confirmEvery)
		ask(2)
		is("confirmed", "up")
	})
}
