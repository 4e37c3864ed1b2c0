package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"
)

// size is the size of a world.
type size struct {
	names, markets, rows int
}

// userRows is the number of rows per user. Some real inventories are as large, but most are
// much smaller. Larger pushes would only make the set-up faster.
const userRows = 10_000

// world is a simulator and a server with full inventories.
type world struct {
	size
	engine   engine
	dir      string
	sim      *simulator
	server   *server
	database []string // settings that select the database of the server
}

// newWorld starts the simulator and the server, and fills the inventories with the server's
// API. It waits until all names that the simulator quotes have a price. env contains
// additional settings of the server.
func (b *bench) newWorld(ctx context.Context, z size, env ...string) (w *world, err error) {
	w = &world{size: z, engine: b.engine}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.dir, err = os.MkdirTemp(b.temp, "world-"); err != nil {
		return w, err
	}
	if w.sim, err = startSimulator(ctx, z.names, z.markets); err != nil {
		return w, err
	}
	if w.database, err = b.engine.prepare(ctx, w.dir); err != nil {
		return w, err
	}
	pricing, err := w.sim.env(ctx, w.dir)
	if err != nil {
		return w, err
	}
	if w.server, err = newServer(ctx, b.binary, w.dir, slices.Concat(w.database, pricing, env)); err != nil {
		return w, err
	}
	if _, err = w.server.start(ctx); err != nil {
		return w, err
	}
	return w, w.fill(ctx)
}

// close stops the simulator and the server. The program removes their files later.
func (w *world) close() error {
	if w.server != nil {
		w.server.kill()
	}
	if w.sim == nil {
		return nil
	}
	return w.sim.close()
}

// asset is an element of a pushed inventory.
type asset struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName"`
	ClassID        string `json:"classId"`
	InstanceID     string `json:"instanceId"`
}

// fill pushes the inventories of all users and waits until their names have prices. Each user
// owns names from the whole catalog.
func (w *world) fill(ctx context.Context) error {
	for from := 0; from < w.rows; from += userRows {
		var items []asset
		for row := from; row < min(from+userRows, w.rows); row++ {
			items = append(items, newAsset(row, w.sim.names[scatter(row, w.names)]))
		}
		if err := w.push(ctx, fmt.Sprint("user-", from/userRows), time.Now(), items, nil); err != nil {
			return err
		}
	}
	return w.server.awaitPrices(ctx)
}

// scatter returns the name index of the n-th row. Neighbouring rows have distant names, and
// all names have the same number of rows.
func scatter(row, names int) int {
	const step = 7_919 // a prime, so that all names occur
	return row * step % names
}

func newAsset(id int, name string) asset {
	return asset{AssetID: fmt.Sprint(10_000_000_000 + id), MarketHashName: name, ClassID: fmt.Sprint(310_000_000 + id%100_000), InstanceID: "302028390"}
}

// synced is the result of a push.
type synced struct {
	Added, Removed, Changed, Unchanged, QueuedNames int
}

// push replaces the inventory of a user with items.
func (w *world) push(ctx context.Context, user string, at time.Time, items []asset, into *synced) error {
	body, err := pushBody(at, items)
	if err != nil {
		return err
	}
	return w.server.push(ctx, user, body, into)
}

func pushBody(at time.Time, items []asset) ([]byte, error) {
	return json.Marshal(map[string]any{"appId": 730, "contextId": "2", "snapshotAt": at.UTC(), "items": items})
}

func (s *server) push(ctx context.Context, user string, body []byte, into *synced) error {
	var response synced
	if into == nil {
		into = &response
	}
	return s.call(ctx, http.MethodPost, "/api/inventory/"+user+"/sync", body, into)
}

// restart stops the server, calls fn while its database is not in use, and starts it again.
func (w *world) restart(ctx context.Context, fn func() error) error {
	if err := w.server.stop(); err != nil {
		return err
	}
	if fn != nil {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err := w.server.start(ctx)
	return err
}
