package view

import (
	"context"
	"database/sql"

	"assay/internal/db"
)

// gamesInUse finds the next game with an index search for each game, so it does not read all items.
const gamesInUse = `
WITH RECURSIVE game (app_id) AS (
	SELECT min(app_id) FROM item
	UNION ALL
	SELECT (SELECT min(i.app_id) FROM item i WHERE i.app_id > game.app_id) FROM game WHERE game.app_id IS NOT NULL)
SELECT app_id FROM game WHERE app_id IS NOT NULL ORDER BY app_id LIMIT $1`

// Games returns the games that have items, at most the given number.
func (r *ItemReader) Games(ctx context.Context, most int) ([]int32, error) {
	return db.Collect(ctx, r.o.Store.Read, func(r *sql.Rows, app *int32) error { return r.Scan(app) }, gamesInUse, most)
}
