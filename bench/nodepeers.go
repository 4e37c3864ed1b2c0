package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The targets are the minimum ratios of the peers' time to Assay's time.
const (
	targetBestPeer  = 1.2
	targetUsualPeer = 15
)

// usualPart is the divisor of the names: without -long, the usual peer refreshes one in usualPart
// names. A full refresh takes minutes, and all names take the same time.
const usualPart = 10

// nodePeers are the peers of one world. Their tables are in the floor's database. A nil *nodePeers
// measures nothing.
type nodePeers struct {
	bench *bench
	world *filled
	redis *redis
	url   string
	names int
	best  *nodePeer
}

// startNodePeers creates the peers' tables and starts the best peer. It returns nil on SQLite
// and if the peers are not installed.
func (b *bench) startNodePeers(ctx context.Context, w *filled) (p *nodePeers, err error) {
	e, ok := b.engine.(postgres)
	if !ok {
		return nil, nil //nolint:nilnil // no measurement, no error
	}
	if missing := missingForNode(); missing != "" {
		b.skip("T1", "refresh by Node and BullMQ", "not installed: "+missing)
		return nil, nil //nolint:nilnil // not installed
	}
	p = &nodePeers{bench: b, world: w, url: e.server.URL(databaseName(w.dir)+"_floor") + "&options=-c%20search_path%3Dpeer"}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	const schema = `BEGIN; CREATE SCHEMA peer; SET LOCAL search_path TO peer;`
	if _, err := w.floor.ExecContext(ctx, schema+peerTables+fillPeer+`; COMMIT`); err != nil {
		return p, fmt.Errorf("create the peer's tables: %w", err)
	}
	if err := w.floor.QueryRowContext(ctx, `SELECT count(*) FROM peer.item`).Scan(&p.names); err != nil {
		return p, err
	}
	if p.redis, err = startRedis(ctx, b.temp); err != nil {
		return p, err
	}
	p.best, err = startNodePeer(ctx, bestPeer, p.url, p.redis, w.sim)
	return p, err
}

func (p *nodePeers) close() error {
	if p == nil {
		return nil
	}
	var err error
	if p.best != nil {
		err = p.best.close()
	}
	if p.redis != nil {
		p.redis.close()
	}
	return err
}

// refreshBest returns the duration of a full refresh of the best peer.
func (p *nodePeers) refreshBest(ctx context.Context) (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	return p.refresh(ctx, p.best, p.names)
}

func (p *nodePeers) refresh(ctx context.Context, peer *nodePeer, names int) (time.Duration, error) {
	if err := p.bench.engine.rest(ctx, p.world.floor); err != nil {
		return 0, err
	}
	did, took, err := peer.refresh(names)
	if err == nil {
		p.bench.note("T1: the %s peer: %s for %s names, %s rows", peer.kind, short(took), count(did.Names), count(did.Rows))
	}
	return took, err
}

// report adds the comparison with the peers. The durations of the best peer correspond to
// those of Assay, in order. It also runs the usual peer once.
func (p *nodePeers) report(ctx context.Context, ours, best []time.Duration) (err error) {
	if p == nil {
		return nil
	}
	ratios := make([]float64, len(best))
	for i := range best {
		ratios[i] = quotient(best[i], ours[i])
	}
	peak, err := p.best.peak()
	if err != nil {
		return err
	}
	p.add("refresh by Node and BullMQ, 500 names per job, set-based SQL", median(ours), median(best), median(ratios), targetBestPeer, peak)

	usual, err := startNodePeer(ctx, usualPeer, p.url, p.redis, p.world.sim)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, usual.close()) }()
	if err := p.world.sim.advance(ctx); err != nil {
		return err
	}
	part := usualPart
	if p.bench.long {
		part = 1
	}
	took, err := p.refresh(ctx, usual, p.names/part)
	if err != nil {
		return err
	}
	if peak, err = usual.peak(); err != nil {
		return err
	}
	took *= time.Duration(part)
	what := "refresh by Node, BullMQ and Prisma, one name per job, row by row"
	if part > 1 {
		what += fmt.Sprintf(" (1 of %d names, times %d)", part, part)
	}
	p.add(what, median(ours), took, quotient(took, median(ours)), targetUsualPeer, peak)
	return nil
}

func (p *nodePeers) add(what string, ours, theirs time.Duration, ratio, target float64, peak int64) {
	p.bench.results = append(p.bench.results, result{
		id: "T1", what: what, ours: short(ours), floor: short(theirs) + " (peer)", ratio: times(ratio),
		target: fmt.Sprintf(">= %.1f", target), peak: peak, good: ratio >= target,
	})
}
