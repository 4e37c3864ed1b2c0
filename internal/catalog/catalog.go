// Package catalog defines what an item is. Names are opaque: compared byte for
// byte, never trimmed, folded or normalised (contract, section 2).
package catalog

import (
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"
)

// Steam's application ids of the games that Assay knows by name.
const (
	CS2  int32 = 730
	Dota int32 = 570
	TF2  int32 = 440
	Rust int32 = 252490
)

// MaxName is the longest market hash name, in bytes.
const MaxName = 512

// Buckets is into how many parts names are divided by their hash. Fetched
// responses are stored by bucket and settled by ranges of buckets, so that no
// step holds a whole market in memory. Stored data depends on it.
const Buckets = 128

// Key identifies an item: all inventory rows with the same key have the same
// price.
type Key struct {
	AppID int32
	Name  string // market hash name
	Phase string // empty but for Doppler-like finishes
}

// ErrName is the kind of all faults of a name.
var ErrName = errors.New("invalid market hash name")

// Errors of CheckName; each is an ErrName.
var (
	ErrNameLength = nameError("must have 1 to 512 bytes")
	ErrNameUTF8   = nameError("must be valid UTF-8")
	ErrNameNUL    = nameError("must not contain a NUL byte")
	ErrPhase      = errors.New("phase must be empty, \"Phase 1\" to \"Phase 4\", \"Ruby\", \"Sapphire\", \"Black Pearl\" or \"Emerald\"")
)

type nameError string

func (e nameError) Error() string        { return "market hash name " + string(e) }
func (e nameError) Is(target error) bool { return target == ErrName }

// CheckName reports whether name can be a market hash name.
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

// Phases lists the phases that an item can have, apart from none.
var Phases = []string{"Phase 1", "Phase 2", "Phase 3", "Phase 4", "Ruby", "Sapphire", "Black Pearl", "Emerald"}

// CheckPhase reports whether phase is empty or one of Phases.
func CheckPhase(phase string) error {
	if phase == "" || slices.Contains(Phases, phase) {
		return nil
	}
	return ErrPhase
}

// Phased reports whether items of this name have phases (the Doppler and Gamma Doppler
// finishes of CS2). Without a phase, the phase of such an item is unknown.
func Phased(name string) bool { return strings.Contains(name, "Doppler (") }

// Bucket returns in which of the Buckets parts a name is. All phases of a name
// are in the same one.
func Bucket(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() % Buckets)
}
