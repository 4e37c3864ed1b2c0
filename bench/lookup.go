package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	lookupPath   = "/api/prices/lookup"
	lookupBodies = 512         // number of different requests
	lookupSlice  = time.Second // duration of one slice per server
	lookupSlices = 3           // slices per run
	targetLookup = 0.65
)

// measureLookup measures lookups of one item and of a hundred items at full load (T8). It
// alternates between the server and a bare handler, which serves the same bytes from a map.
func (b *bench) measureLookup(ctx context.Context) (err error) {
	w, err := b.fullWorld(ctx)
	if err != nil {
		return err
	}
	known, err := w.lookupAll(ctx)
	if err != nil {
		return err
	}
	p, err := startPeer(ctx, known)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	l := lookupBench{bench: b, world: w, peer: p}
	for _, items := range []int{1, 100} {
		if err := l.compareLookups(ctx, items); err != nil {
			return err
		}
	}
	return l.measureExplained(ctx)
}

// lookupBench measures reads of one world and of a peer that serves the same items.
type lookupBench struct {
	*bench
	world *filled
	peer  *peer
}

// compareLookups measures lookups with the given number of items.
func (l *lookupBench) compareLookups(ctx context.Context, items int) error {
	for n := range 8 {
		body, err := l.world.lookupBody(n, items)
		if err != nil {
			return err
		}
		if err := l.world.sameResponse(ctx, l.peer, body); err != nil {
			return err
		}
	}
	ours, err := l.world.lookupRequests(l.world.server.addr, items)
	if err != nil {
		return err
	}
	theirs, err := l.world.lookupRequests(l.peer.addr, items)
	if err != nil {
		return err
	}
	if _, _, err := compareFloods(ctx, l.world.server.addr, ours, l.peer.addr, theirs); err != nil {
		return err // now caches are warm
	}
	var rates, floors, ratios []float64
	for range l.runs * lookupSlices {
		rate, floor, err := compareFloods(ctx, l.world.server.addr, ours, l.peer.addr, theirs)
		if err != nil {
			return err
		}
		rates, floors, ratios = append(rates, rate), append(floors, floor), append(ratios, rate/floor)
	}
	ratio := median(ratios)
	l.note("T8: lookups of %d: ratios %.2f to %.2f", items, quantile(ratios, 0), quantile(ratios, 100))
	l.results = append(l.results, result{
		id: "T8", what: fmt.Sprintf("lookups of %d over HTTP, compared with a bare handler that serves the same bytes from a map; median of %d", items, len(ratios)),
		ours: perSecond(median(rates)), floor: perSecond(median(floors)), ratio: times(ratio),
		target: fmt.Sprintf(">= %.2f", targetLookup), good: ratio >= targetLookup,
	})
	return nil
}

// compareFloods measures both servers for the same time, alternately.
func compareFloods(ctx context.Context, addr string, ours [][]byte, peerAddr string, theirs [][]byte) (rate, floor float64, err error) {
	if floor, err = flood(ctx, peerAddr, theirs, lookupSlice); err != nil {
		return 0, 0, fmt.Errorf("peer: %w", err)
	}
	rate, err = flood(ctx, addr, ours, lookupSlice)
	return rate, floor, err
}

// measureExplained measures requests for an item with its explanation, for comparison with a
// lookup of one item.
func (l *lookupBench) measureExplained(ctx context.Context) error {
	requests := make([][]byte, lookupBodies)
	for n := range requests {
		path := "/api/prices/items/" + url.PathEscape(l.world.sim.names[scatter(n, l.world.names)])
		var err error
		if requests[n], err = request(http.MethodGet, l.world.server.addr, path, l.world.server.token, nil); err != nil {
			return err
		}
	}
	var rates []float64
	for range l.runs {
		rate, err := flood(ctx, l.world.server.addr, requests, lookupSlice)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	l.results = append(l.results, result{
		id: "T8", what: "items with all quotes, from the database, for comparison", ours: perSecond(median(rates)),
		target: "none", good: true,
	})
	return nil
}

func perSecond(rate float64) string { return count(int(rate)) + "/s" }

// lookupAll returns the lookup response of each name that has a price.
func (w *filled) lookupAll(ctx context.Context) (known []json.RawMessage, err error) {
	for from := 0; from < w.names; from += 1000 {
		body, err := lookupBody(w.sim.names[from:min(from+1000, w.names)])
		if err != nil {
			return nil, err
		}
		var response struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := w.server.call(ctx, http.MethodPost, lookupPath, body, &response); err != nil {
			return nil, err
		}
		known = append(known, response.Items...)
	}
	return known, nil
}

// lookupRequests returns lookup requests with the given number of items for a server.
func (w *filled) lookupRequests(addr string, items int) ([][]byte, error) {
	requests := make([][]byte, lookupBodies)
	for n := range requests {
		body, err := w.lookupBody(n, items)
		if err != nil {
			return nil, err
		}
		if requests[n], err = request(http.MethodPost, addr, lookupPath, w.server.token, body); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// lookupBody returns the n-th request body with the given number of items.
func (w *filled) lookupBody(n, items int) ([]byte, error) {
	names := make([]string, items)
	for i := range names {
		names[i] = w.sim.names[scatter(n*items+i, w.names)]
	}
	return lookupBody(names)
}

// sameResponse fails unless both servers return the same bytes.
func (w *filled) sameResponse(ctx context.Context, p *peer, body []byte) error {
	var responses [2][]byte
	for i, addr := range []string{w.server.addr, p.addr} {
		status, response, err := send(ctx, w.server.client, http.MethodPost, "http://"+addr+lookupPath, w.server.token, body)
		if err != nil || status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("status %d: %.300s", status, response))
		}
		responses[i] = response
	}
	if !bytes.Equal(responses[0], responses[1]) {
		return fmt.Errorf("server sent %.300s, peer sent %.300s", responses[0], responses[1])
	}
	return nil
}

func lookupBody(names []string) ([]byte, error) {
	keys := make([]peerKey, len(names))
	for i, name := range names {
		keys[i] = peerKey{AppID: 730, MarketHashName: name}
	}
	return json.Marshal(map[string]any{"items": keys})
}
