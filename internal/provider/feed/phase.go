package feed

import (
	"strconv"
	"strings"

	"assay/internal/catalog"
)

// Phase returns b if it is a phase, or "".
func Phase(b []byte) string {
	for _, p := range catalog.Phases {
		if string(b) == p {
			return p
		}
	}
	return ""
}

// CutSuffix splits a phase such as " - Ruby" off the end of a name. It returns the name
// unchanged if it has no phase or consists of a phase only.
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

// CutInfix removes a phase from the middle of a name such as "Doppler Ruby (Factory New)". It
// returns the name unchanged if it has no phase.
func CutInfix(name string) (rest, phase string) {
	for _, p := range catalog.Phases {
		if before, after, ok := strings.Cut(name, " Doppler "+p+" ("); ok {
			return before + " Doppler (" + after, p
		}
	}
	return name, ""
}

// PhaseOfPaint returns the phase of a CS2 paint index, or "".
func PhaseOfPaint(index []byte) string {
	paint, err := strconv.ParseUint(string(index), 10, 16)
	if err != nil || index[0] == '0' {
		return ""
	}
	return catalog.PaintPhase(int64(paint))
}
