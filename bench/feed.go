package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	exportPath    = "/api/prices/snapshot"
	exportRows    = 35_000
	exportMarkets = 2
	targetExport  = 500 * time.Millisecond

	streamClients  = 1_000
	silentClients  = 100 // number of these clients that never read
	targetStreamed = 1.05

	drained  = 3 * time.Second // after this time without a byte, the clients have all events
	maxDrain = time.Minute
)

// feedWorld returns a world for the measurements of the feed. Its server has just started, so
// that its peak memory does not include the set-up.
func (b *bench) feedWorld(ctx context.Context) (*world, error) {
	b.note("T14 and T15: filling %s names, %d markets", count(exportRows), exportMarkets)
	w, err := b.newWorld(ctx, size{exportRows, exportMarkets, exportRows})
	if err != nil {
		return nil, err
	}
	if err := w.restart(ctx, nil); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// measureFeed measures exports of all prices (T14), and refreshes with and without clients of
// the stream (T15).
func (b *bench) measureFeed(ctx context.Context) (err error) {
	w, err := b.feedWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	f := feedBench{bench: b, world: w}
	if b.wanted("T14") {
		if err := f.measureExports(ctx); err != nil {
			return err
		}
	}
	if !b.wanted("T15") {
		return nil
	}
	for _, c := range []struct {
		what   string
		change func(context.Context) error
	}{{"prices change as in ten minutes", w.sim.tick}, {"every price changes", w.sim.advance}} {
		if err := f.measureStreams(ctx, c.what, c.change); err != nil {
			return err
		}
	}
	return nil
}

// feedBench measures exports and streams of one world.
type feedBench struct {
	*bench
	world *world
}

func (f *feedBench) measureExports(ctx context.Context) error {
	for _, e := range []struct{ format, encoding string }{
		{"ndjson", "identity"}, {"json", "identity"}, {"ndjson", "gzip"}, {"ndjson", "zstd"}, {"json", "gzip"}, {"json", "zstd"},
	} {
		if err := f.measureExport(ctx, e.format, e.encoding); err != nil {
			return err
		}
	}
	return nil
}

// measureExport measures the time of an export and the processor time that the server needs for
// it.
func (f *feedBench) measureExport(ctx context.Context, format, encoding string) error {
	var took, used []time.Duration
	var bytes int64
	for run := range f.runs + 1 {
		before, err := f.world.server.cpu()
		if err != nil {
			return err
		}
		began := time.Now()
		if bytes, err = f.world.export(ctx, format, encoding); err != nil {
			return err
		}
		wall := time.Since(began)
		after, err := f.world.server.cpu()
		if err != nil {
			return err
		}
		if run > 0 { // now caches are warm
			took, used = append(took, wall), append(used, after-before)
		}
	}
	peak, err := f.world.server.peak()
	if err != nil {
		return err
	}
	best := quantile(took, 0)
	f.results = append(f.results, result{
		id: "T14", what: fmt.Sprintf("export of %s items as %s, %s, %s; best of %d (median %s), processor time of the server %s",
			count(exportRows), format, encoding, mebibytes(bytes), len(took), short(median(took)), short(median(used))),
		ours: short(best), target: "< " + short(targetExport), peak: peak, good: best < targetExport,
	})
	return nil
}

// export reads an export and returns its number of bytes.
func (w *world) export(ctx context.Context, format, encoding string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.url(exportPath+"."+format), http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.server.token)
	req.Header.Set("Accept-Encoding", encoding)
	resp, err := w.server.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("export: status %d", resp.StatusCode)
	}
	return n, err
}

// measureStreams measures refreshes with clients of the stream, of which some never read. Each
// follows a refresh without clients.
func (f *feedBench) measureStreams(ctx context.Context, what string, change func(context.Context) error) error {
	refresh := func() (took, used time.Duration, changed int, err error) {
		if err := change(ctx); err != nil {
			return 0, 0, 0, err
		}
		before, err := f.world.server.cpu()
		if err != nil {
			return 0, 0, 0, err
		}
		j, took, err := f.world.again(ctx)
		if err != nil {
			return 0, 0, 0, err
		}
		after, err := f.world.server.cpu()
		return took, after - before, j.ChangedItems, err
	}
	if _, _, _, err := refresh(); err != nil { // now caches are warm
		return err
	}
	var ratios, usedRatios []float64
	var alone, loaded, delivered []time.Duration
	var changed, read int64
	for range f.runs {
		tookAlone, usedAlone, _, err := refresh()
		if err != nil {
			return err
		}
		clients, err := openStreams(ctx, f.world.server)
		if err != nil {
			return err
		}
		took, used, n, err := refresh()
		late := clients.drain()
		clients.close()
		if err != nil {
			return err
		}
		alone, loaded, delivered = append(alone, tookAlone), append(loaded, took), append(delivered, late)
		ratios, usedRatios = append(ratios, quotient(took, tookAlone)), append(usedRatios, quotient(used, usedAlone))
		changed, read = int64(n), clients.read.Load()
		f.note("T15: %s: alone %s, with clients %s; processor time %s and %s; %d changed, clients read %s until %s later",
			what, short(tookAlone), short(took), short(usedAlone), short(used), n, mebibytes(read), short(late))
	}
	peak, err := f.world.server.peak()
	if err != nil {
		return err
	}
	ratio := median(ratios)
	f.results = append(f.results, result{
		id: "T15", what: fmt.Sprintf("refresh with %s stream clients, of which %d never read; %s: %s changes, the clients read %s until %s later; ratio of the server's processor time %s",
			count(streamClients), silentClients, what, count(int(changed)), mebibytes(read), short(median(delivered)), times(median(usedRatios))),
		ours: short(median(loaded)), floor: short(median(alone)) + " (ours, no clients)", ratio: times(ratio),
		target: fmt.Sprintf("<= %.2f", targetStreamed), peak: peak, good: ratio <= targetStreamed && peak <= targetWidePeak,
	})
	return nil
}

// streams are open connections to the stream.
type streams struct {
	conns   []net.Conn
	readers sync.WaitGroup
	read    atomic.Int64 // bytes that all clients received
}

func openStreams(ctx context.Context, s *server) (*streams, error) {
	get, err := request(http.MethodGet, s.addr, "/api/prices/stream", s.token, nil)
	if err != nil {
		return nil, err
	}
	out := &streams{}
	for n := range streamClients {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
		if err == nil {
			out.conns = append(out.conns, conn)
			_, err = conn.Write(get)
		}
		head := make([]byte, len("HTTP/1.1 200"))
		if err == nil {
			_, err = io.ReadFull(conn, head)
		}
		if err == nil && string(head) != "HTTP/1.1 200" {
			err = fmt.Errorf("stream: got %q, want status 200", head)
		}
		if err != nil {
			out.close()
			return nil, err
		}
		if n >= silentClients {
			out.readers.Go(func() { _, _ = io.Copy(out, conn) }) // ends when the connection is closed
		}
	}
	return out, nil
}

// Write counts the bytes that a client received.
func (s *streams) Write(b []byte) (int, error) {
	s.read.Add(int64(len(b)))
	return len(b), nil
}

// drain waits until the clients have received all events. It returns how long this took.
func (s *streams) drain() time.Duration {
	began, last := time.Now(), time.Duration(0)
	for read := int64(-1); time.Since(began)-last < drained && time.Since(began) < maxDrain; {
		if n := s.read.Load(); n-read > streamClients*1_000 { // less is a heartbeat
			read, last = n, time.Since(began)
		}
		<-time.After(100 * time.Millisecond)
	}
	return last
}

// close closes all connections.
func (s *streams) close() {
	for _, c := range s.conns {
		_ = c.Close() // the server may have closed it
	}
	s.readers.Wait()
}

// cpu returns the processor time that the process has used.
func (s *server) cpu() (time.Duration, error) {
	times, err := readTimes(strconv.Itoa(s.process.Process.Pid))
	return times.own, err
}
