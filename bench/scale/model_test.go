package main

import (
	"math"
	"testing"
)

func TestSimulate_OneServerTakesTimeOfItsWork(t *testing.T) {
	l := Load{Instances: 1, Names: 1, Markets: 1, Rows: 40_000, Changed: 1, Databases: 1}
	for cores, want := range map[int]float64{1: 40_000, 2: 20_000, 4: 20_000} { // an instance has two apply workers
		o := Simulate(l, Machine{Cores: cores, Disk: 1}, Costs{WriteRow: 1})
		if o.Total() != want {
			t.Errorf("%d cores: got %v s, want %v", cores, o.Total(), want)
		}
	}
}

func TestSimulate_AllInstancesShareTheDisk(t *testing.T) {
	l := Load{Instances: 8, Names: 1, Markets: 1, Rows: 200_000, Changed: 1, Databases: 1}
	o := Simulate(l, Machine{Cores: 64, Disk: 1_000}, Costs{RowBytes: 10})
	if o.Total() != 2_000 || math.Abs(o.Disk-1) > 1e-9 {
		t.Errorf("got the load %+v, want a full disk in 2,000 s", o)
	}
}

func TestSimulate_MoreInstancesAreNotSlower(t *testing.T) {
	free := measured()
	free.Heartbeat, free.PeerCheck, free.PeerCheckRow, free.Sweep = 0, 0, 0, 0
	last := math.Inf(1)
	for _, n := range []int{1, 2, 4, 8, 16, 64} {
		l := Load{Instances: n, Names: 30_000, Markets: 10, Rows: 1_000_000, Changed: 1, Databases: 1}
		o := Simulate(l, Machine{Cores: 8, Disk: 1e9}, free)
		if o.Total() > last*1.05 {
			t.Errorf("%d instances: got %v s, want at most %v", n, o.Total(), last)
		}
		if o.Database > 1+1e-9 || o.Disk > 1+1e-9 {
			t.Errorf("%d instances: got %+v, want a use of at most 100 %%", n, o)
		}
		last = o.Total()
	}
}

func TestSimulate_PeerChecksGrowQuadratically(t *testing.T) {
	idle := func(n int) float64 {
		return Simulate(Load{Instances: n, Names: 1, Markets: 1, Rows: 1, Databases: 1}, Machine{Cores: 1, Disk: 1}, Costs{PeerCheckRow: 1e-9}).Idle
	}
	if got := idle(1_000) / idle(100); math.Abs(got-100) > 1e-6 {
		t.Errorf("ten times the instances: got %v times the cost, want 100", got)
	}
}
