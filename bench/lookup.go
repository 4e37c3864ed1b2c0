package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	lookupPath    = "/api/prices/lookup"
	lookupBodies  = 512 // different requests that are sent in turn
	lookupSeconds = 3
	targetLookup  = 0.6
)

// measureLookup asks for one price and for a hundred as fast as the answers
// come, in turn from ours and from a bare handler that answers the same bytes
// from a map (T8).
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
	for _, items := range []int{1, 100} {
		if err := b.compareLookups(ctx, w, p, items); err != nil {
			return err
		}
	}
	return nil
}

// compareLookups measures lookups of so many items.
func (b *bench) compareLookups(ctx context.Context, w *filled, p *peer, items int) error {
	for n := range 8 {
		body, err := w.lookupBody(n, items)
		if err != nil {
			return err
		}
		if err := w.sameAnswer(ctx, p, body); err != nil {
			return err
		}
	}
	ours, err := w.lookupRequests(w.server.addr, items)
	if err != nil {
		return err
	}
	theirs, err := w.lookupRequests(p.addr, items)
	if err != nil {
		return err
	}
	var rates, floors, ratios []float64
	for range b.runs + 1 {
		floor, err := flood(ctx, p.addr, theirs, lookupSeconds*time.Second)
		if err != nil {
			return fmt.Errorf("peer: %w", err)
		}
		rate, err := flood(ctx, w.server.addr, ours, lookupSeconds*time.Second)
		if err != nil {
			return err
		}
		b.say("T8: %d items: ours %.0f/s, peer %.0f/s, %.2f", items, rate, floor, rate/floor)
		rates, floors, ratios = append(rates, rate), append(floors, floor), append(ratios, rate/floor)
	}
	// The first of them warmed both up.
	ratio := median(ratios[1:])
	b.results = append(b.results, result{
		id: "T8", what: fmt.Sprintf("lookups of %d over HTTP, against a bare handler that answers the same from a map; median of %d", items, b.runs),
		ours: perSecond(median(rates[1:])), floor: perSecond(median(floors[1:])), ratio: times(ratio),
		target: fmt.Sprintf(">= %.1f", targetLookup), good: ratio >= targetLookup,
	})
	return nil
}

func perSecond(rate float64) string { return count(int(rate)) + "/s" }

// lookupAll returns what a lookup answers for each name that has a price.
func (w *filled) lookupAll(ctx context.Context) (known []json.RawMessage, err error) {
	for from := 0; from < w.names; from += 1000 {
		body, err := lookupBody(w.sim.names[from:min(from+1000, w.names)])
		if err != nil {
			return nil, err
		}
		var answer struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := w.server.call(ctx, http.MethodPost, lookupPath, body, &answer); err != nil {
			return nil, err
		}
		known = append(known, answer.Items...)
	}
	return known, nil
}

// lookupRequests makes requests of so many items to a server at an address.
func (w *filled) lookupRequests(addr string, items int) ([][]byte, error) {
	requests := make([][]byte, lookupBodies)
	for n := range requests {
		body, err := w.lookupBody(n, items)
		if err != nil {
			return nil, err
		}
		if requests[n], err = request(addr, lookupPath, w.server.token, body); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// lookupBody is the n-th body that asks for so many items.
func (w *filled) lookupBody(n, items int) ([]byte, error) {
	names := make([]string, items)
	for i := range names {
		names[i] = w.sim.names[scatter(n*items+i, w.names)]
	}
	return lookupBody(names)
}

// sameAnswer fails unless both answer a body alike, byte for byte.
func (w *filled) sameAnswer(ctx context.Context, p *peer, body []byte) error {
	var answers [2][]byte
	for i, addr := range []string{w.server.addr, p.addr} {
		status, answer, err := send(ctx, w.server.client, http.MethodPost, "http://"+addr+lookupPath, w.server.token, body)
		if err != nil || status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("status %d: %.300s", status, answer))
		}
		answers[i] = answer
	}
	if !bytes.Equal(answers[0], answers[1]) {
		return fmt.Errorf("ours answers %.300s, the peer %.300s", answers[0], answers[1])
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
