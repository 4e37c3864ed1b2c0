package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What the peers shall need of our time, at the least.
const (
	targetBestPeer  = 1.3
	targetUsualPeer = 15
)

// usualPart is of how many names the usual peer refreshes one, unless there is
// time: it takes minutes, and every name takes as long as the next.
const usualPart = 10

// nodePeers are the peers of one world, on tables of their own in the floor's
// database. Without them, nil, nothing is measured.
type nodePeers struct {
	bench *bench
	world *filled
	redis *redis
	url   string
	names int
	best  *nodePeer
}

// startNodePeers makes the peers' tables and starts the best one. There are none on
// SQLite, and none where they are not installed.
func (b *bench) startNodePeers(ctx context.Context, w *filled) (p *nodePeers, err error) {
	e, ok := b.engine.(postgres)
	if !ok {
		return nil, nil //nolint:nilnil // nothing to measure, and nothing wrong
	}
	if missing := missingForNode(); missing != "" {
		b.skip("T1", "refresh by Node and BullMQ", "not installed: "+missing)
		return nil, nil //nolint:nilnil // as said
	}
	p = &nodePeers{bench: b, world: w, url: e.server.URL(databaseName(w.dir)+"_floor") + "&options=-c%20search_path%3Dpeer"}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	const schema = `BEGIN; CREATE SCHEMA peer; SET LOCAL search_path TO peer;`
	if _, err := w.floor.ExecContext(ctx, schema+peerTables+fillPeer+`; COMMIT`); err != nil {
		return p, fmt.Errorf("the peer's tables: %w", err)
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

// refreshBest returns how long the best peer takes for everything.
func (p *nodePeers) refreshBest(ctx context.Context) (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	return p.refresh(ctx, p.best, p.names)
}

func (p *nodePeers) refresh(ctx context.Context, who *nodePeer, names int) (time.Duration, error) {
	if err := p.bench.engine.rest(ctx, p.world.floor); err != nil {
		return 0, err
	}
	did, took, err := who.refresh(names)
	if err == nil {
		p.bench.say("T1: the %s peer: %s for %s names, %s rows", who.kind, short(took), count(did.Names), count(did.Rows))
	}
	return took, err
}

// report adds how the peers compare with our refreshes, the best one's in the
// order of ours. The usual peer has its turn here, once.
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
	p.add("refresh by Node and BullMQ, 500 names a job, set-based SQL", median(ours), median(best), median(ratios), targetBestPeer, peak)

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
	what := "refresh by Node, BullMQ and Prisma, a name a job, row by row"
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
