package db

import (
	"context"
	"time"
)

const (
	// turnLock is the key of the advisory lock of Turn.
	turnLock = 0x61737361<<32 + 6
	// turnConns is the number of write connections from which Turn may use one.
	turnConns = 4
	// turnPause is how long Turn does not wait after it could not take a turn, so that a long or
	// stopped piece of work delays others once.
	turnPause = 10 * time.Second
)

// takeTurnPostgres waits for three seconds, the time after which other instances take over from
// a stopped one. The takeover ends its transactions. The transaction of a turn is idle while its
// process works.
const takeTurnPostgres = `
SELECT set_config('lock_timeout', '3s', true), set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock($1)`

// Turn waits until no other process of the same PostgreSQL database has a turn, and takes a turn
// until the caller calls end. If the wait takes three seconds, or the database fails, it returns
// without a turn, and so do all calls in the next ten seconds. So turns can spread work over time,
// but they protect nothing. On SQLite, behind a pooler, and with few connections, Turn returns
// immediately.
func (s *DB) Turn(ctx context.Context) (end func()) {
	none := func() {}
	if !s.turns || time.Now().UnixNano() < s.noTurns.Load() {
		return none
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err == nil {
		end = func() { _ = tx.Rollback() } // the transaction wrote nothing
		if _, err = tx.ExecContext(ctx, takeTurnPostgres, int64(turnLock)); err == nil {
			return end
		}
		end()
	}
	s.noTurns.Store(time.Now().Add(turnPause).UnixNano())
	return none
}
