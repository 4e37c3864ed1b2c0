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

// CutSuffix takes a phase off a name that ends with it, " - Ruby", and leaves
// any other name as it is, one that would be nothing else included.
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

// CutInfix takes a phase out of a name that has it behind the finish,
// "Doppler Ruby (Factory New)", and leaves any other name as it is.
func CutInfix(name string) (rest, phase string) {
	for _, p := range catalog.Phases {
		if before, after, ok := strings.Cut(name, " Doppler "+p+" ("); ok {
			return before + " Doppler (" + after, p
		}
	}
	return name, ""
}

// PhaseOfPaint returns the phase that a paint index of CS2 is of, or "".
func PhaseOfPaint(index []byte) string {
	paint, err := strconv.ParseUint(string(index), 10, 16)
	if err != nil || index[0] == '0' {
		return ""
	}
	return catalog.PaintPhase(int64(paint))
}
