package catalog

import "strings"

// PaintPhase returns the phase that a paint index of CS2 is of, or "". The numbers
// are those of the paint kits in the game's own items_game.txt; knives of later
// cases, and the Glock-18, have paints of their own for the same phase.
func PaintPhase(paint int64) string {
	switch paint {
	case 418, 852, 569, 1120:
		return "Phase 1"
	case 419, 618, 853, 570, 1121:
		return "Phase 2"
	case 420, 854, 571, 1122:
		return "Phase 3"
	case 421, 855, 572, 1123:
		return "Phase 4"
	case 415:
		return "Ruby"
	case 416, 619:
		return "Sapphire"
	case 417, 617:
		return "Black Pearl"
	case 568, 1119:
		return "Emerald"
	}
	return ""
}

// PhaseOf returns the phase of an item of CS2 that has this name and this paint,
// or "": where the name comes in no phases, or comes in those of the other
// finish, Doppler or Gamma Doppler.
func PhaseOf(name string, paint int64) string {
	if !Phased(name) || strings.Contains(name, "Gamma Doppler (") != gamma(paint) {
		return ""
	}
	return PaintPhase(paint)
}

// gamma reports whether a paint is one of Gamma Doppler.
func gamma(paint int64) bool {
	return paint >= 568 && paint <= 572 || paint >= 1119 && paint <= 1123
}
