// Package sim implements a market simulator for the demo, the tests and the
// benchmarks. All of its items and prices are invented.
//
// The simulator has about 37,600 items with the name grammar of CS2. Its
// markets quote different prices for the same item, as real markets do. The
// package contains the HTTP server and the Provider that reads from it.
//
// A quote is computed from a seed, the item's index in the catalogue, the
// market and the tick. The simulator therefore keeps no prices in memory, and
// simulators with the same seed return the same quotes. Amounts are integers in
// thousandths of a dollar, so results do not depend on floating-point rounding.
package sim

import "time"

// Defaults of the simulator and of the Provider that reads it.
const (
	DefaultMarkets = 10              // markets quoted by default
	MaxMarkets     = 100             // maximum of Options.Markets
	MaxNames       = 5_000_000       // maximum of Options.Names
	BatchSize      = 500             // maximum number of names per batch request
	Interval       = 5 * time.Minute // time between changes of a bulk file

	// TicksPerWeek is the default number of ticks in which 55-60 % of a
	// market's prices change. It corresponds to one week of ten-minute ticks.
	TicksPerWeek = 1008
)

// catalogueSeed generates the catalogue. It is fixed so that the names do not
// depend on the seed of the prices.
const catalogueSeed = 0x5eed_0f_a55a_1

// mil is an amount in thousandths of a dollar.
type mil = int64
