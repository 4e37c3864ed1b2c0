package feed

import (
	"strconv"
	"strings"

	"assay/internal/catalog"
)

// Phase returns the phase that b spells, or "".
func Phase(b []byte) string {
	for _, p := range catalog.Phases {
		if string(b) == p {
			return p
		}
	}
	return ""
}

// CutSuffix splits a phase off the end of a name: " - Ruby". It returns other names
// unchanged, and a name that would become empty.
func CutSuffix(name string) (rest, phase string) {
	for _, p := range catalog.Phases {
		if rest, ok := strings.CutSuffix(name, p); ok {
			if rest, ok = strings.CutSuffix(rest, " - "); ok && rest != "" {
				return rest, p
			}
		}
	}
	return name, ""
}

// CutInfix cuts a phase out of the middle of a name: "Doppler Ruby (Factory New)". It
// returns other names unchanged.
func CutInfix(name string) (rest, phase string) {
	for _, p := range catalog.Phases {
		if before, after, ok := strings.Cut(name, " Doppler "+p+" ("); ok {
			return before + " Doppler (" + after, p
		}
	}
	return name, ""
}

// PhaseOfPaint returns the phase of a paint index of CS2, or "".
func PhaseOfPaint(index []byte) string {
	paint, err := strconv.ParseUint(string(index), 10, 16)
	if err != nil || index[0] == '0' {
		return ""
	}
	return catalog.PaintPhase(int64(paint))
}
