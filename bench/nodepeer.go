package main

import (
	"bufio"
	"context"
	_ "embed" // tables of the peer
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// nodePeer is another implementation of the refresh in a separate process. It uses Node,
// BullMQ and PostgreSQL with separate tables.
type nodePeer struct {
	kind      string // file in bench/peer
	process   *exec.Cmd
	stdin     io.WriteCloser
	responses *bufio.Scanner
}

// There are two versions of the peer.
const (
	bestPeer  = "best"  // 500 names per job, set-based SQL
	usualPeer = "usual" // one name per job, row by row with Prisma
)

// nodeSlots is the number of concurrent jobs of each peer. More jobs make neither peer faster
// on two cores.
var nodeSlots = map[string]int{bestPeer: 2, usualPeer: 10}

// missingForNode returns the missing programs and packages. An empty text means that the peers
// can run.
func missingForNode() string {
	var missing []string
	for _, program := range []string{"node", "redis-server"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if _, err := os.Stat(filepath.Join(nodeDir, "node_modules", ".ready")); err != nil {
		missing = append(missing, "the packages of "+nodeDir)
	}
	return strings.Join(missing, ", ")
}

const nodeDir = "bench/peer"

// startNodePeer starts a peer that uses a database and reads the simulator.
func startNodePeer(ctx context.Context, kind, database string, r *redis, s *simulator) (*nodePeer, error) {
	markets := make([]string, len(s.markets))
	for i, m := range s.markets {
		markets[i] = m.Key
	}
	settings, err := json.Marshal(map[string]any{
		"peer": kind, "database": database, "redis": r.socket, "provider": s.url, "markets": markets, "slots": nodeSlots[kind],
	})
	if err != nil {
		return nil, err
	}
	p := &nodePeer{kind: kind, process: exec.CommandContext(ctx, "node", filepath.Join(nodeDir, "main.mjs"), string(settings))} //nolint:gosec // our own script
	p.process.Env = append(os.Environ(), "NODE_ENV=production")
	p.process.Stderr = os.Stderr
	if p.stdin, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	p.responses = bufio.NewScanner(out)
	if err := p.response(&struct{}{}); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// response decodes the next line of the peer's output.
func (p *nodePeer) response(into any) error {
	if !p.responses.Scan() {
		return fmt.Errorf("the %s peer %w", p.kind, errors.Join(errEnded, p.responses.Err()))
	}
	return json.Unmarshal(p.responses.Bytes(), into)
}

// peerRefresh is the result of a peer's refresh.
type peerRefresh struct{ Names, Rows int }

// refresh refreshes the given number of names with the peer. It returns the result and the
// duration.
func (p *nodePeer) refresh(names int) (did peerRefresh, took time.Duration, err error) {
	began := time.Now()
	if _, err = fmt.Fprintln(p.stdin, names); err == nil {
		err = p.response(&did)
	}
	if err == nil && did.Names != names {
		err = fmt.Errorf("the %s peer refreshed %d names, want %d", p.kind, did.Names, names)
	}
	return did, time.Since(began), err
}

// peak returns the peak memory of the peer in bytes, without Redis and PostgreSQL.
func (p *nodePeer) peak() (int64, error) {
	var kib int64
	_, err := fmt.Sscan(field("/proc/"+strconv.Itoa(p.process.Process.Pid)+"/status", "VmHWM"), &kib)
	return kib << 10, err
}

// close stops the peer.
func (p *nodePeer) close() error {
	err := p.stdin.Close()
	return errors.Join(err, p.process.Wait())
}

// peerTables creates the tables of the peer in a separate schema of Assay's database.
//
//go:embed peer/schema.sql
var peerTables string

// fillPeer copies items, the newest quotes and all inventory rows from Assay's tables to the
// peer's tables, in the same order.
const fillPeer = `
	INSERT INTO peer.item (id, name, price, average, markets, checked_at)
	SELECT id, name, price, average, markets, price_checked_at FROM public.item WHERE phase = '' ORDER BY id;
	INSERT INTO peer.snapshot (item_id, market, ask, bid, sale, listings, sales, fetched_at)
	SELECT item_id, m.key, ask, bid, sale, listings, sales, fetched_at
	FROM public.market_snapshot AS s JOIN public.market AS m ON m.id = s.market_id ORDER BY item_id, market_id;
	INSERT INTO peer.inventory (id, user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, value)
	SELECT id, user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, value
	FROM public.inventory ORDER BY id`
