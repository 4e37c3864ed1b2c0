// Package randtest makes random tests that can be repeated. Each test prints its
// seed. With ASSAY_LONG a test runs its full count with a new seed each time;
// otherwise its seed is fixed, so that a change is tested with the same cases as
// the code before it. ASSAY_SEED sets the seed in both.
package randtest

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test, and prints it.
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
			tb.Fatalf("ASSAY_SEED: %v", err)
		}
	}
	tb.Logf("ASSAY_SEED=%d", seed)
	return seed
}

// New returns a generator for a test. It is not safe for concurrent use.
func New(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Seed(tb), 0))
}

// Long reports whether tests run with their full counts.
func Long() bool { return os.Getenv("ASSAY_LONG") != "" }

// Count returns how many random cases to try.
func Count(short, full int) int {
	if Long() {
		return full
	}
	return short
}
