package db_test

import (
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

func TestTurn_OneProcessAtATime(t *testing.T) {
	t.Parallel()
	d := dbtest.On(t, dbtest.PostgreSQL)
	first, second := d.Open(t, db.Options{}), d.Open(t, db.Options{})
	end := first.Turn(t.Context())
	taken := make(chan func())
	go func() { taken <- second.Turn(t.Context()) }()
	select {
	case <-taken:
		t.Fatal("the second process: got a turn, want it to wait for the first")
	case <-time.After(200 * time.Millisecond):
	}
	end()
	endSecond := <-taken

	for _, want := range []time.Duration{3 * time.Second, 0} { // the next call does not wait
		start := time.Now()
		first.Turn(t.Context())()
		if waited := time.Since(start); waited < want*9/10 || waited > want+2*time.Second {
			t.Errorf("wait for a turn that does not end: got %v, want %v", waited, want)
		}
	}
	endSecond()
}

// The caller works without a turn if it cannot have one.
func TestTurn_DoesNotWait(t *testing.T) {
	file := dbtest.On(t, dbtest.SQLite).Open(t, db.Options{})
	server := dbtest.On(t, dbtest.PostgreSQL)
	few := server
	few.URL += "&pool_max_conns=4"
	closed := server.Open(t, db.Options{})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	defer server.Open(t, db.Options{}).Turn(t.Context())()
	for name, s := range map[string]*db.DB{"SQLite": file, "few connections": few.Open(t, db.Options{}), "a closed database": closed} {
		start := time.Now()
		s.Turn(t.Context())()
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("%s: got a wait of %v, want none", name, waited)
		}
	}
}
