// Package sim implements a market simulator for the demo, the tests and the
// benchmarks. All of its items and prices are invented.
//
// The simulator has about 37,600 items with the name grammar of CS2. Its
// markets quote different prices for the same item, as real markets do. The
// package contains the HTTP server and the Provider that reads from it.
//
// A quote is computed from a seed, the item's index in the catalog, the
// market and the tick. The simulator therefore keeps no prices in memory, and
// simulators with the same seed return the same quotes. Amounts are integers in
// thousandths of a dollar, so results do not depend on floating-point rounding.
package sim
