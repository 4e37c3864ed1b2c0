package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// listingSlice is the duration of the phases at rest and during the wait for the providers. planned is
// the time to plan a refresh. hanging is the response delay of the providers.
const (
	listingSlice = 2 * time.Second
	planned      = time.Second
	hanging      = planned + listingSlice + 2*time.Second
)

// BenchmarkListing creates listings one after the other. Each listing has a new seller with an
// inventory of two assets. The server runs in this process. The benchmark measures three phases: at
// rest, while a refresh waits for all providers, and while the refresh writes at full speed.
//
//	go test ./bench -run '^$' -bench Listing -benchtime 5x -database postgres
func BenchmarkListing(b *testing.B) {
	w := worldWithin(b, size{names: 10_000, markets: 2, rows: 100_000})
	defer startProfile(b)()
	l := lister{world: w}
	took := map[string][]time.Duration{}
	for b.Loop() {
		took["rest"] = append(took["rest"], l.list(b, after(listingSlice))...)
		if err := w.sim.delay(b.Context(), hanging); err != nil {
			b.Fatal(err)
		}
		refreshed := make(chan struct{})
		go func() {
			defer close(refreshed)
			if _, _, err := w.server.refresh(b.Context()); err != nil {
				b.Error(err)
			}
		}()
		<-after(planned)
		took["hanging"] = append(took["hanging"], l.list(b, after(listingSlice))...)
		if err := w.sim.delay(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		<-after(hanging - planned - listingSlice)
		took["writing"] = append(took["writing"], l.list(b, refreshed)...)
		if err := w.sim.advance(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for phase, all := range took {
		for name, percent := range map[string]int{"p50": 50, "p99": 99} {
			b.ReportMetric(float64(quantile(all, percent).Microseconds())/1000, phase+"-"+name+"-ms")
		}
	}
}

// lister creates listings in a world.
type lister struct {
	*world
	listed int
}

// list creates listings until done is closed. It returns how long each listing took.
func (l *lister) list(b *testing.B, done <-chan struct{}) (took []time.Duration) {
	b.Helper()
	for {
		select {
		case <-done:
			return took
		default:
		}
		l.listed++
		a := newAsset(1_000_000_000+l.listed, l.sim.names[l.listed%l.names])
		other := newAsset(2_000_000_000+l.listed, l.sim.names[(l.listed+1)%l.names])
		body, err := json.Marshal(map[string]any{
			"userId": fmt.Sprint("seller-", l.listed), "appId": 730, "contextId": "2", "assetId": a.AssetID, "price": 100, "currency": "USD",
			"inventory": map[string]any{"items": []asset{a, other}},
		})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := l.server.call(b.Context(), http.MethodPost, "/api/listings", body, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
}
