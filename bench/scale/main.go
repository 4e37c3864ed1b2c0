// Command scale estimates refreshes with more instances, more inventory rows and larger servers
// than the benchmarks use. It simulates the stages of a run, unit by unit, with costs measured on
// the machine of the benchmarks. docs/contribute/scale.md explains the results.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { report(os.Stdout) }

// measured returns the costs of a refresh of work R on PostgreSQL 15. Sources: the server's
// statement times, the program's profile, and pgbench for heartbeats and peer checks
// (processor time of its backend). The bytes of a row are computed: its log record and its share of
// a page. After a checkpoint, a page is logged in full once and written once.
func measured() Costs {
	return Costs{
		DecodeQuote:   1.4e-6,
		StoreQuote:    1.0e-6,
		EstimateQuote: 5.0e-6,
		ReadQuote:     4.0e-6,
		WriteQuote:    7.3e-6,
		WriteItem:     20e-6,
		WriteRow:      3.0e-6,
		ReadRow:       0.8e-6,
		Commit:        300e-6,
		Heartbeat:     140e-6,
		PeerCheck:     30e-6,
		PeerCheckRow:  0.17e-6,
		Sweep:         30e-6,
		QuoteBytes:    500,
		ItemBytes:     800,
		RowBytes:      660,

		Latency:         0.5e-3,
		ProviderLatency: 2,
	}
}

// scene is a load on a machine.
type scene struct {
	what    string
	load    Load
	machine Machine
}

func scenes() []scene {
	small := Machine{Cores: 2, Disk: 200e6}
	middle := Machine{Cores: 8, Disk: 500e6}
	large := Machine{Cores: 32, Disk: 2e9}
	load := func(instances, names, rows, databases int) Load {
		return Load{Instances: instances, Names: names, Markets: 10, Rows: rows, Changed: 0.55, Databases: databases}
	}
	return []scene{
		{"one machine", load(1, 30_000, 1_000_000, 1), small},
		{"one more", load(2, 30_000, 1_000_000, 1), small},
		{"a dedicated server", load(4, 30_000, 10_000_000, 1), middle},
		{"more instances", load(16, 30_000, 10_000_000, 1), middle},
		{"100 million rows", load(16, 30_000, 100_000_000, 1), large},
		{"100 instances", load(100, 30_000, 100_000_000, 1), large},
		{"1,000 instances", load(1_000, 30_000, 100_000_000, 1), large},
		{"100 instances for 10 databases", load(100, 30_000, 100_000_000, 10), large},
	}
}

// report prints a Markdown table.
func report(w io.Writer) {
	var b strings.Builder
	b.WriteString("| | instances | rows | databases x cores | run | fetch, estimate, apply | server busy | disk busy | busy when idle | connections |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range scenes() {
		o := Simulate(s.load, s.machine, measured())
		fmt.Fprintf(&b, "| %s | %d | %d million | %d x %d | %.1f s | %.1f, %.1f, %.1f | %.0f %% | %.0f %% | %.1f %% | %d |\n",
			s.what, s.load.Instances, s.load.Rows/1_000_000, s.load.Databases, s.machine.Cores,
			o.Total(), o.Fetch, o.Estimate, o.Apply, 100*o.Database, 100*o.Disk, 100*o.Idle, o.Connections)
	}
	_, _ = io.WriteString(w, b.String())
}
