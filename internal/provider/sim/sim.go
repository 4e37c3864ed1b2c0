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

// catalogSeed generates the catalog. It is fixed so that the names do not
// depend on the seed of the prices.
const catalogSeed = 0x5eed_0f_a55a_1

// mil is an amount in thousandths of a dollar.
type mil = int64
