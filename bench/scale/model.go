package main

import (
	"container/heap"
	"math"
)

// Load is the work and the number of instances, databases and rows.
type Load struct {
	Instances int
	Names     int     // unique names in inventories
	Markets   int     // each market quotes every name
	Rows      int     // inventory rows
	Changed   float64 // share of the names with a new price
	Databases int     // the rows are divided among them; names and quotes are in each
}

// Machine is the database server. An instance has two cores.
type Machine struct {
	Cores int
	Disk  float64 // bytes of log and pages written per second
}

// Costs are core seconds, or bytes, per unit of work. They were measured on the machine of the
// benchmarks, as described in docs/contribute/scale.md.
type Costs struct {
	DecodeQuote     float64 // instance: decode, check and encode a quote of a response
	StoreQuote      float64 // database: store an encoded quote of a response
	EstimateQuote   float64 // instance: read, estimate and encode a quote of a batch
	ReadQuote       float64 // database: read the old quote
	WriteQuote      float64 // database: write a changed quote
	WriteItem       float64 // database: write an item and its row in the job
	WriteRow        float64 // database: write the price of an inventory row
	ReadRow         float64 // database: find that a row already has its price
	Commit          float64 // database: one transaction, including its claim
	Heartbeat       float64 // database: heartbeat of an instance
	PeerCheck       float64 // database: one check of all instances, without their rows
	PeerCheckRow    float64 // database: one row of such a check
	Sweep           float64 // database: one search for work
	QuoteBytes      float64 // log and pages written for a changed quote
	ItemBytes       float64
	RowBytes        float64
	Latency         float64 // round trip from an instance to the database, in seconds
	ProviderLatency float64 // response time of a provider, in seconds
}

// These are frequencies per instance and second; see internal/refresh.
const (
	heartbeatsPerSecond = 2.0
	checksPerSecond     = 2.0
	sweepsPerSecond     = 2.5 // five kinds of work, every two seconds
	batchNames          = 500
	rangeRows           = 20_000
	workers             = 2  // estimate and apply workers per instance
	connections         = 24 // database connections per instance: the store and the dispatcher
)

// Outcome is the result of a run.
type Outcome struct {
	Fetch, Estimate, Apply float64 // seconds
	Database               float64 // share of the database's cores in use during the run
	Disk                   float64 // share of the disk's throughput in use during the run
	Idle                   float64 // share of the database's cores in use without a run
	Connections            int     // per database
}

// Total returns the duration of the run in seconds.
func (o Outcome) Total() float64 { return o.Fetch + o.Estimate + o.Apply }

// station is a set of servers. Each serves one customer at a time, in order of arrival.
type station struct {
	free []float64 // time at which each server is free
	busy float64
}

func newStation(servers int) *station { return &station{free: make([]float64, servers)} }

// serve returns the time at which a customer that arrives at the given time is done.
func (s *station) serve(at, seconds float64) float64 {
	next := 0
	for i, f := range s.free {
		if f < s.free[next] {
			next = i
		}
	}
	s.busy += seconds
	s.free[next] = max(at, s.free[next]) + seconds
	return s.free[next]
}

// step is a part of a unit of work: a number of seconds at a station, or a wait.
type step struct {
	at      func(worker int) *station // nil: wait
	seconds float64
}

// worker is the progress of a worker in a unit of work.
type worker struct {
	id, step int
	due      float64
}

type queue []worker

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(w any)        { *q = append(*q, w.(worker)) } //nolint:forcetypeassert // only workers are pushed
func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	*q = (*q)[:last]
	return w
}

// stage processes a number of pieces with a number of workers. Each piece has the same steps. It
// returns the time at which the last piece is done.
func stage(from float64, pieces, workers int, steps []step) float64 {
	var q queue
	for id := range min(workers, pieces) {
		q = append(q, worker{id: id, due: from})
	}
	begun, end := len(q), from
	for len(q) > 0 {
		w := heap.Pop(&q).(worker) //nolint:forcetypeassert // only workers are pushed
		s := steps[w.step]
		if s.at == nil {
			w.due += s.seconds
		} else {
			w.due = s.at(w.id).serve(w.due, s.seconds)
		}
		w.step++
		if w.step == len(steps) {
			end = max(end, w.due)
			if begun == pieces {
				continue
			}
			begun++
			w.step = 0
		}
		heap.Push(&q, w)
	}
	return end
}

// Simulate simulates one refresh.
func Simulate(l Load, m Machine, c Costs) Outcome {
	idle := idleCores(l, c) / float64(m.Cores)
	slow := 1 / max(1-idle, 0.01) // factor by which idle instances slow the database down
	database, disk := newStation(m.Cores), newStation(1)
	cpus := make([]*station, l.Instances)
	for i := range cpus {
		cpus[i] = newStation(2)
	}
	db := func(int) *station { return database }
	log := func(int) *station { return disk }
	cpu := func(w int) *station { return cpus[w%l.Instances] }

	var o Outcome
	quotes := float64(l.Names)
	o.Fetch = stage(0, l.Markets, workers*l.Instances, []step{
		{nil, c.ProviderLatency},
		{cpu, quotes * c.DecodeQuote},
		{nil, c.Latency},
		{db, (c.Commit + quotes*c.StoreQuote) * slow},
	})
	names := math.Min(batchNames, float64(l.Names))
	batchQuotes := names * float64(l.Markets)
	estimated := stage(o.Fetch, ceil(l.Names, batchNames), workers*l.Instances, []step{
		{nil, c.Latency},
		{db, (c.Commit + batchQuotes*c.ReadQuote) * slow},
		{cpu, batchQuotes * c.EstimateQuote},
		{nil, c.Latency},
		{db, (names*c.WriteItem + batchQuotes*l.Changed*c.WriteQuote) * slow},
		{log, (names*c.ItemBytes + batchQuotes*l.Changed*c.QuoteBytes) / m.Disk},
	})
	o.Estimate = estimated - o.Fetch
	rows := ceil(l.Rows, l.Databases)
	end := stage(estimated, ceil(rows, rangeRows), workers*l.Instances, []step{
		{nil, c.Latency},
		{db, (c.Commit + rangeRows*(l.Changed*c.WriteRow+(1-l.Changed)*c.ReadRow)) * slow},
		{log, rangeRows * l.Changed * c.RowBytes / m.Disk},
	})
	o.Apply = end - estimated
	o.Idle = idle
	o.Database = database.busy/slow/(end*float64(m.Cores)) + idle
	o.Disk = disk.busy / end
	o.Connections = l.Instances * connections
	return o
}

// idleCores returns the number of database cores that idle instances use: for heartbeats,
// checks of all other instances, and searches for work.
func idleCores(l Load, c Costs) float64 {
	one := heartbeatsPerSecond*c.Heartbeat + checksPerSecond*(c.PeerCheck+float64(l.Instances)*c.PeerCheckRow) + sweepsPerSecond*c.Sweep
	return float64(l.Instances) * one
}

func ceil(n, d int) int { return (n + d - 1) / d }
