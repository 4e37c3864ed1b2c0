// Package randtest supports repeatable tests with random input. Each test logs its seed.
// By default the seed is fixed, so that each run tests the same cases. If ASSAY_LONG is
// set, a test uses a new seed and runs more cases. ASSAY_SEED sets the seed.
package randtest

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns and logs the seed of a test.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(tb.Name()))
	seed := hash.Sum64()
	if Long() {
		seed = rand.Uint64()
	}
	if text := os.Getenv("ASSAY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			tb.Fatalf("got ASSAY_SEED=%q, want an unsigned integer: %v", text, err)
		}
	}
	tb.Logf("ASSAY_SEED=%d", seed)
	return seed
}

// New returns a random generator for a test. It is not safe for concurrent use.
func New(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Seed(tb), 0))
}

// Long reports whether tests must run their full number of cases.
func Long() bool { return os.Getenv("ASSAY_LONG") != "" }

// Count returns the number of random cases to run: full if Long returns true, and short otherwise.
func Count(short, full int) int {
	if Long() {
		return full
	}
	return short
}
