package main

import (
	"container/heap"
	"math"
)

// Load is what is to be done, and by how many.
type Load struct {
	Instances int
	Names     int     // unique names in inventories
	Markets   int     // each quotes every name
	Rows      int     // inventory rows
	Changed   float64 // share of the names with another price than before
	Databases int     // the rows are divided among so many; names and quotes are in each
}

// Machine is the database server. An instance has two cores.
type Machine struct {
	Cores int
	Disk  float64 // bytes of log and pages written in a second
}

// Costs are seconds of one core, or bytes, for a piece of work. They were
// measured, as docs/explanation/scale.md says, on the machine of the benchmarks.
type Costs struct {
	DecodeQuote     float64 // instance: decode, check and pack a quote of an answer
	StoreQuote      float64 // database: store a quote of an answer, packed
	SettleQuote     float64 // instance: read, judge and encode a quote of a batch
	ReadQuote       float64 // database: read the old quote
	WriteQuote      float64 // database: write one that changed
	WriteItem       float64 // database: write an item and its place in the job
	WriteRow        float64 // database: write the value of an inventory row
	ReadRow         float64 // database: see that a row has its value already
	Commit          float64 // database: one transaction, its claim included
	Beat            float64 // database: an instance says that it lives
	Watch           float64 // database: one look at all who live, without its rows
	WatchRow        float64 // database: a row of that
	Sweep           float64 // database: one look for work
	QuoteBytes      float64 // log and pages written for a quote that changed
	ItemBytes       float64
	RowBytes        float64
	Latency         float64 // seconds from an instance to the database and back
	ProviderLatency float64 // seconds until a provider answers
}

// What the program does how often, per instance and second; see internal/refresh.
const (
	beatsPerSecond  = 2.0
	looksPerSecond  = 2.0
	sweepsPerSecond = 2.5 // five kinds of work, every two seconds
	batchNames      = 500
	rangeRows       = 20_000
	workers         = 2  // that settle or spread, per instance
	connections     = 20 // to the database, per instance: the store's and the dispatcher's
)

// Outcome is what a run comes to.
type Outcome struct {
	Fetch, Settle, Spread float64 // seconds
	Database              float64 // share of the busiest database's cores in use during the run
	Disk                  float64 // share of its disk
	Idle                  float64 // share of its cores that is used when nobody runs anything
	Connections           int     // to each database
}

// Total is how long the run takes, in seconds.
func (o Outcome) Total() float64 { return o.Fetch + o.Settle + o.Spread }

// station serves one customer per server at a time, in the order of arrival.
type station struct {
	free []float64 // when each server is free again
	busy float64
}

func newStation(servers int) *station { return &station{free: make([]float64, servers)} }

// serve returns when a customer who arrives at a moment is done.
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

// step is one part of a piece of work: so many seconds at a station, or of
// nothing but waiting.
type step struct {
	at      func(worker int) *station // nil: waiting
	seconds float64
}

// worker is at a step of a piece of work.
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

// stage lets workers do so many pieces of work, each in the same steps, and
// returns when the last one is done.
func stage(from float64, pieces, workers int, steps []step) float64 {
	var q queue
	for id := range min(workers, pieces) {
		q = append(q, worker{id: id, due: from})
	}
	begun, end := len(q), from
	for len(q) > 0 {
		w := heap.Pop(&q).(worker) //nolint:forcetypeassert // as above
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

// Simulate runs one refresh.
func Simulate(l Load, m Machine, c Costs) Outcome {
	idle := idleCores(l, c) / float64(m.Cores)
	slow := 1 / max(1-idle, 0.01) // what is left of the database for the run
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
	settled := stage(o.Fetch, ceil(l.Names, batchNames), workers*l.Instances, []step{
		{nil, c.Latency},
		{db, (c.Commit + batchQuotes*c.ReadQuote) * slow},
		{cpu, batchQuotes * c.SettleQuote},
		{nil, c.Latency},
		{db, (names*c.WriteItem + batchQuotes*l.Changed*c.WriteQuote) * slow},
		{log, (names*c.ItemBytes + batchQuotes*l.Changed*c.QuoteBytes) / m.Disk},
	})
	o.Settle = settled - o.Fetch
	rows := ceil(l.Rows, l.Databases)
	end := stage(settled, ceil(rows, rangeRows), workers*l.Instances, []step{
		{nil, c.Latency},
		{db, (c.Commit + rangeRows*(l.Changed*c.WriteRow+(1-l.Changed)*c.ReadRow)) * slow},
		{log, rangeRows * l.Changed * c.RowBytes / m.Disk},
	})
	o.Spread = end - settled
	o.Idle = idle
	o.Database = database.busy/slow/(end*float64(m.Cores)) + idle
	o.Disk = disk.busy / end
	o.Connections = l.Instances * connections
	return o
}

// idleCores is how many cores of the database it takes that the instances are
// there: each says that it lives, looks at all others, and looks for work.
func idleCores(l Load, c Costs) float64 {
	one := beatsPerSecond*c.Beat + looksPerSecond*(c.Watch+float64(l.Instances)*c.WatchRow) + sweepsPerSecond*c.Sweep
	return float64(l.Instances) * one
}

func ceil(n, d int) int { return (n + d - 1) / d }
