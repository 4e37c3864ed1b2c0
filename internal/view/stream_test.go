package view_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/money"
)

// follow reads the stream like a client until it has read the event with the number last.
func (w *world) follow(ctx context.Context, after, last int64) (string, error) {
	var text strings.Builder
	for after < last {
		known := w.KnownNumber()
		if after >= known {
			if !w.AwaitEvent(ctx, known) || ctx.Err() != nil {
				return "", fmt.Errorf("after %d: got %w, want more events", after, ctx.Err())
			}
			continue
		}
		read := w.stream.Read
		if w.stream.Behind(after) {
			read = w.stream.Older
		}
		found, err := read(ctx, after)
		if err != nil {
			return "", err
		}
		text.Write(found.Text)
		after = found.Next
	}
	return text.String(), nil
}

// itemNames returns the names of n items.
func itemNames(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("item ", i))
	}
	return out
}

// change gives all items a new price and returns the number of the last event.
func (w *world) change(names []string, round int) int64 {
	w.Helper()
	prices := map[string]money.Micro{}
	for i, name := range names {
		prices[name] = units(int64(10 + i + round%2))
	}
	w.now = w.now.Add(7 * time.Hour) // beyond the TTL
	w.price(prices)
	last, err := w.LastNumber(w.Context())
	w.must(err)
	return last
}

// TestStream_ManyClientsCauseFewReads follows several jobs with many clients. Some clients begin
// in the middle of a page that other clients read.
func TestStream_ManyClientsCauseFewReads(t *testing.T) {
	const clients, rounds = 300, 5
	w := newWorld(t, false)
	all := itemNames(20)
	w.own("u", all...)
	first := w.change(all, 0)
	second := w.change(all, 1)
	from := []int64{0, first - 1, first, second - 1, second, second}
	got := make([]string, clients)
	end := make(chan int64)
	var ready, done sync.WaitGroup
	for i := range clients {
		ready.Add(1)
		done.Go(func() {
			after := from[i%len(from)]
			text, err := w.follow(t.Context(), after, max(second, after))
			ready.Done()
			if err == nil {
				got[i], err = w.follow(t.Context(), second, <-end)
				got[i] = text + got[i]
			}
			if err != nil {
				t.Errorf("client %d: got error %v, want none", i, err)
			}
		})
	}
	ready.Wait()
	for round := range rounds {
		last := w.change(all, round)
		if round == rounds-1 {
			for range clients {
				end <- last
			}
		}
	}
	done.Wait()
	for i := range from {
		for k := i; k < clients; k += len(from) {
			if got[k] != got[i] || !strings.HasSuffix(got[0], got[i]) {
				t.Fatalf("client %d after %d: got %q, want the end of %q", k, from[i], got[k], got[0])
			}
		}
	}
	if ids := strings.Count(got[0], "id: "); ids != 2*(rounds+2) {
		t.Errorf("the client after 0 got %d events, want %d", ids, 2*(rounds+2))
	}
	// Each start needs at most one read, and each job needs at most two, because the first read
	// may find only one event of the job.
	if reads, _ := w.stream.RecentUse(); reads > int64(len(from)+2*(rounds+2)) {
		t.Errorf("%d clients caused %d reads, want at most %d", clients, reads, len(from)+2*(rounds+2))
	}
}

// TestStream_ClientsBehindReadTheDatabase lets clients fall behind the pages in memory.
func TestStream_ClientsBehindReadTheDatabase(t *testing.T) {
	const limit = 16_000
	w := newWorld(t, false)
	w.stream.LimitRecent(limit)
	all := itemNames(20)
	w.own("u", all...)
	var fast strings.Builder
	last := int64(0)
	for round := range 5 {
		next := w.change(all, round)
		text, err := w.follow(t.Context(), last, next)
		w.must(err)
		fast.WriteString(text)
		last = next
	}
	if !w.stream.Behind(0) || w.stream.Behind(last) {
		t.Errorf("got behind %t at 0 and %t at the end, want true and false", w.stream.Behind(0), w.stream.Behind(last))
	}
	before, _ := w.stream.RecentUse()
	slow, err := w.follow(t.Context(), 0, last)
	w.must(err)
	after, size := w.stream.RecentUse()
	if slow != fast.String() {
		t.Errorf("the slow client got %q, want %q", slow, fast.String())
	}
	if size > limit || after == before {
		t.Errorf("got %d bytes in memory and %d reads by the slow client, want at most %d bytes and some reads", size, after-before, limit)
	}
	if _, err := w.stream.Older(t.Context(), last+1); err == nil {
		t.Error("Older after an unknown number: got no error, want one")
	}
}
