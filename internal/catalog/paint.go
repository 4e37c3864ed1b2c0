package catalog

import "strings"

// PaintPhase returns the phase of a CS2 paint index, or "" if the paint has no phase. The
// numbers come from the paint kits in items_game.txt, a file of the game. Several paints
// have the same phase: knives of later cases and the Glock-18 use separate paints.
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

// PhaseOf returns the phase of a CS2 item with the given name and paint index. It returns
// "" if items with this name have no phases. It also returns "" if the paint belongs to
// Gamma Doppler and the name to Doppler, or vice versa.
func PhaseOf(name string, paint int64) string {
	if !Phased(name) || strings.Contains(name, "Gamma Doppler (") != gamma(paint) {
		return ""
	}
	return PaintPhase(paint)
}

// gamma reports whether a paint belongs to the finish Gamma Doppler.
func gamma(paint int64) bool {
	return paint >= 568 && paint <= 572 || paint >= 1119 && paint <= 1123
}
