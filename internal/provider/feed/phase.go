package feed

import (
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

// PhaseOfPaint returns the phase that a paint index of CS2 is of, or "". Knives of
// later cases have paints of their own for the same phase.
func PhaseOfPaint(index []byte) string {
	switch string(index) {
	case "418", "852", "569", "1120":
		return "Phase 1"
	case "419", "618", "853", "570", "1121":
		return "Phase 2"
	case "420", "854", "571", "1122":
		return "Phase 3"
	case "421", "855", "572", "1123":
		return "Phase 4"
	case "415":
		return "Ruby"
	case "416", "619":
		return "Sapphire"
	case "417", "617":
		return "Black Pearl"
	case "568", "1119":
		return "Emerald"
	}
	return ""
}
