package web

import (
	"testing"
	"time"

	"assay/internal/config"
)

func TestSessions_EndWhenIdle(t *testing.T) {
	c := newClock()
	s := newSessions(10, c.Now)
	token := s.open(Read, config.Fingerprint{1})
	for range 5 {
		c.add(idleTimeout - time.Second)
		if _, ok := s.find(token); !ok {
			t.Fatal("an active session ended")
		}
	}
	c.add(idleTimeout)
	if _, ok := s.find(token); ok {
		t.Error("an idle session is still valid")
	}
	if len(s.byKey) != 0 || s.used[Read].Len() != 0 {
		t.Error("an ended session is still stored")
	}
}

func TestSessions_EndAtMaximumAge(t *testing.T) {
	for role, longest := range map[Role]time.Duration{Read: readTimeout, Admin: adminTimeout} {
		c := newClock()
		s := newSessions(10, c.Now)
		token := s.open(role, config.Fingerprint{1})
		for age := time.Duration(0); ; age += 30 * time.Minute {
			_, ok := s.find(token)
			if ok != (age < longest) {
				t.Errorf("%v session after %v: got valid %v, want it valid only before its maximum age", role, age, ok)
			}
			if age >= longest {
				break
			}
			c.add(30 * time.Minute)
		}
	}
}

func TestSessions_ReplaceLeastRecentlyUsed(t *testing.T) {
	s := newSessions(3, newClock().Now)
	a, b, c := s.open(Read, config.Fingerprint{}), s.open(Read, config.Fingerprint{}), s.open(Read, config.Fingerprint{})
	s.find(a)
	d := s.open(Read, config.Fingerprint{})
	for token, want := range map[string]bool{a: true, b: false, c: true, d: true} {
		if _, ok := s.find(token); ok != want {
			t.Errorf("got valid %v, want %v", ok, want)
		}
	}
}

func TestSessions_ReadersDoNotReplaceAdmins(t *testing.T) {
	s := newSessions(3, newClock().Now)
	admin, first := s.open(Admin, config.Fingerprint{}), s.open(Read, config.Fingerprint{})
	for range 100 {
		s.open(Read, config.Fingerprint{})
	}
	if _, ok := s.find(admin); !ok {
		t.Error("the admin was signed out")
	}
	if _, ok := s.find(first); ok || len(s.byKey) != 4 {
		t.Errorf("got %d sessions, want 4", len(s.byKey))
	}
}

func TestSessions_StoreNoToken(t *testing.T) {
	s := newSessions(3, newClock().Now)
	token := s.open(Read, config.Fingerprint{})
	found, _ := s.find(token)
	if len(token) != 43 || found.csrf == token || string(found.key[:]) == token {
		t.Errorf("got a token of %d characters, want 43, stored only as a hash", len(token))
	}
	if _, ok := s.find(string(found.key[:])); ok {
		t.Error("the stored hash opens a session")
	}
}

func TestSessions_FlashIsShownOnce(t *testing.T) {
	s := newSessions(3, newClock().Now)
	sess, _ := s.find(s.open(Read, config.Fingerprint{}))
	s.put(sess.key, flash{Text: "done"})
	if f := s.take(sess.key); f == nil || f.Text != "done" {
		t.Errorf("got flash %v, want done", f)
	}
	if f := s.take(sess.key); f != nil {
		t.Errorf("second take: got flash %v, want none", f)
	}
	s.close(sess.key)
	s.put(sess.key, flash{})
	if f := s.take(sess.key); f != nil {
		t.Error("got a flash of an ended session, want none")
	}
}
