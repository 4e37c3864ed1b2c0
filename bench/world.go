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

// size says how much there is in a world.
type size struct {
	names, markets, rows int
}

// userRows is how many rows a user owns: some inventories are as large, most far
// smaller, and larger pushes only make filling faster.
const userRows = 10_000

// world is a simulator and a server with full inventories.
type world struct {
	size
	engine   engine
	dir      string
	sim      *simulator
	server   *server
	database []string // settings that lead the server to its database
}

// newWorld starts both and fills the inventories over the server's own API; all
// names have been priced then, as far as the simulator quotes them. env are
// further settings of the server.
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

// close ends the world. What it stored goes with the program's directory.
func (w *world) close() error {
	if w.server != nil {
		w.server.kill()
	}
	if w.sim == nil {
		return nil
	}
	return w.sim.close()
}

// asset is an element of a push.
type asset struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName"`
	ClassID        string `json:"classId"`
	InstanceID     string `json:"instanceId"`
}

// fill pushes the inventories of all users and waits until their names are
// priced. Each user owns names from everywhere in the catalogue.
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

// scatter returns which of so many names the n-th row has. Neighbouring rows have
// names far apart, and each name has equally many rows.
func scatter(row, names int) int {
	const step = 7_919 // a prime, so that every name has its turn
	return row * step % names
}

func newAsset(id int, name string) asset {
	return asset{AssetID: fmt.Sprint(10_000_000_000 + id), MarketHashName: name, ClassID: fmt.Sprint(310_000_000 + id%100_000), InstanceID: "302028390"}
}

// synced is what a push did.
type synced struct {
	Added, Removed, Changed, Unchanged, QueuedNames int
}

// push makes items the inventory of a user.
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
	var answer synced
	if into == nil {
		into = &answer
	}
	return s.call(ctx, http.MethodPost, "/api/inventory/"+user+"/sync", body, into)
}

// restart stops the server, calls fn while nothing has its database open, and
// starts it again.
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
