package provider

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedHealth_StoresBreakerChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{}
		failing := false
		c, _ := newFake(Options{Allowance: a, Attempts: 1}, func(int) (*http.Response, error) {
			if failing {
				return reply(500, ""), nil
			}
			return reply(200, "ok"), nil
		})
		send := func(n int) {
			for range n {
				_ = c.Do(t.Context(), get, discard)
			}
		}
		wantStored := func(what string, want ...string) {
			t.Helper()
			if !slices.Equal(a.health, want) {
				t.Errorf("%s: got %q stored, want %q", what, a.health, want)
			}
			a.health = nil
		}
		send(3)
		wantStored("first response of the process", "up")
		failing = true
		send(breakAfter - 1)
		wantStored("failures below the threshold")
		a.downErr = errors.New("no database")
		send(1)
		wantStored("breaker opens, store fails", "down: repeated failures: server")
		a.downErr = nil
		time.Sleep(DefaultPause)
		send(1)
		wantStored("failed probe stores it again", "down: repeated failures: server")
		time.Sleep(2 * DefaultPause)
		send(1)
		wantStored("next failed probe")
		failing = false
		time.Sleep(4 * DefaultPause)
		send(2)
		wantStored("first response after the failures", "up")
		time.Sleep(confirmEvery)
		send(2)
		wantStored("response after confirmEvery", "up")
	})
}
