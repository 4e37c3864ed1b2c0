// Package sim is a market simulator: an invented catalogue of about 37,600
// items with the name grammar of CS2, markets that disagree about their prices
// as real ones do, an HTTP server that quotes them, and the Provider that reads
// it. It serves the demo, the tests and the benchmarks; no price in it is real.
//
// Everything is computed from a seed, an item's place in the catalogue, a
// market and a tick, so that a simulator of any size keeps no prices in memory
// and two of them with the same seed quote the same. Amounts are whole
// thousandths of a dollar; no float takes part.
package sim

import "time"

// Defaults of the simulator and of the Provider that reads it.
const (
	DefaultMarkets = 10              // markets quoted by default
	MaxMarkets     = 100             // most markets that can be requested
	MaxNames       = 5_000_000       // most names that can be requested
	BatchSize      = 500             // most names that a batch request takes
	Interval       = 5 * time.Minute // how long a bulk file stays the same

	// TicksPerWeek is the default pace: 55-60 % of a market's prices change
	// within so many ticks. It is a week of a tick every ten minutes.
	TicksPerWeek = 1008
)

// catalogueSeed makes the catalogue. It is fixed, so that names are the same
// for everyone whatever the seed of the prices.
const catalogueSeed = 0x5eed_0f_a55a_1

// mil is an amount in thousandths of a dollar.
type mil = int64
