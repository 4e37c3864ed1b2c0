package db

import (
	"context"
	"strconv"
)

// turnConns is the number of write connections from which Turn may use one.
const turnConns = 4

// turnLock is the key of the advisory lock of Turn.
const turnLock = 0x61737361<<32 + 6

// takeTurnPostgres waits for three seconds, the time after which other instances take over from
// a stopped one. The takeover ends its transactions.
var takeTurnPostgres = `SET LOCAL lock_timeout = '3s'; SELECT pg_advisory_xact_lock(` + strconv.FormatInt(turnLock, 10) + `)`

// Turn waits until no other process of the same PostgreSQL database has a turn, and takes a turn
// until the caller calls end. If the wait takes three seconds, or the database fails, it returns
// without a turn. So turns can spread work over time, but they protect nothing. On SQLite, behind
// a pooler, and with few connections, Turn returns immediately.
func (s *DB) Turn(ctx context.Context) (end func()) {
	none := func() {}
	if !s.turns {
		return none
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return none
	}
	end = func() { _ = tx.Rollback() } // the transaction wrote nothing
	if _, err := tx.ExecContext(ctx, takeTurnPostgres); err != nil {
		end()
		return none
	}
	return end
}
