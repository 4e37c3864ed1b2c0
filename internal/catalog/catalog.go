// Package catalog defines items and their keys. Names are opaque byte strings. Assay
// compares them byte for byte and never trims, folds or normalises them.
package catalog

import (
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"
)

// Steam application ids of common games.
const (
	CS2  int32 = 730
	Dota int32 = 570
	TF2  int32 = 440
	Rust int32 = 252490
)

// MaxName is the maximum length of a market hash name, in bytes.
const MaxName = 512

// Buckets is the number of hash buckets of names. Responses are stored and estimated in
// ranges of buckets, so that no step needs a whole market in memory. Stored data depends
// on this value, so it must not change.
const Buckets = 128

// Key identifies an item. All inventory rows with the same key have the same price.
type Key struct {
	AppID int32
	Name  string // market hash name
	Phase string // Doppler phase; empty: none or unknown
}

// ErrName matches all errors of CheckName with errors.Is.
var ErrName = errors.New("invalid market hash name")

// Errors of CheckName and CheckPhase.
var (
	ErrNameLength = nameError("must have 1 to 512 bytes")
	ErrNameUTF8   = nameError("must be valid UTF-8")
	ErrNameNUL    = nameError("must not contain a NUL byte")
	ErrPhase      = errors.New("phase must be empty, \"Phase 1\" to \"Phase 4\", \"Ruby\", \"Sapphire\", \"Black Pearl\" or \"Emerald\"")
)

type nameError string

func (e nameError) Error() string        { return "market hash name " + string(e) }
func (e nameError) Is(target error) bool { return target == ErrName }

// CheckName returns an error if name cannot be a market hash name.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return ErrNameLength
	case !utf8.ValidString(name):
		return ErrNameUTF8
	case strings.IndexByte(name, 0) >= 0:
		return ErrNameNUL
	}
	return nil
}

// Phases lists the valid phases. The empty phase is valid too and is not in the list.
var Phases = []string{"Phase 1", "Phase 2", "Phase 3", "Phase 4", "Ruby", "Sapphire", "Black Pearl", "Emerald"}

// CheckPhase returns ErrPhase unless phase is empty or one of Phases.
func CheckPhase(phase string) error {
	if phase == "" || slices.Contains(Phases, phase) {
		return nil
	}
	return ErrPhase
}

// Phased reports whether items with this name have phases. These are the items with the
// CS2 finishes Doppler and Gamma Doppler. An empty phase of such an item is an unknown
// phase.
func Phased(name string) bool { return strings.Contains(name, "Doppler (") }

// Bucket returns the bucket of a name, from 0 to Buckets-1. All phases of a name share a
// bucket.
func Bucket(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never returns an error
	return int(h.Sum32() % Buckets)
}
