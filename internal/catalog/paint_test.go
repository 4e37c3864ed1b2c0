package catalog

import "testing"

func TestPhaseOf_RequiresAPaintOfTheFinish(t *testing.T) {
	const doppler, gammaDoppler, glock = "★ Karambit | Doppler (Factory New)", "★ StatTrak™ Bayonet | Gamma Doppler (Minimal Wear)", "Glock-18 | Gamma Doppler (Factory New)"
	for _, c := range []struct {
		name  string
		paint int64
		want  string
	}{
		{doppler, 415, "Ruby"},
		{doppler, 419, "Phase 2"},
		{doppler, 617, "Black Pearl"},
		{doppler, 855, "Phase 4"},
		{gammaDoppler, 568, "Emerald"},
		{gammaDoppler, 569, "Phase 1"},
		{glock, 1119, "Emerald"},
		{glock, 1123, "Phase 4"},
		{doppler, 568, ""},
		{doppler, 1121, ""},
		{gammaDoppler, 415, ""},
		{gammaDoppler, 853, ""},
		{doppler, 38, ""},
		{doppler, 0, ""},
		{doppler, -1, ""},
		{"★ Karambit | Fade (Factory New)", 415, ""},
		{"", 415, ""},
	} {
		if got := PhaseOf(c.name, c.paint); got != c.want {
			t.Errorf("PhaseOf(%q, %d) = %q, want %q", c.name, c.paint, got, c.want)
		}
	}
}

func TestPaintPhase_ReturnsAllPhases(t *testing.T) {
	found := map[string]bool{}
	for paint := range int64(2000) {
		phase := PaintPhase(paint)
		if err := CheckPhase(phase); err != nil {
			t.Errorf("PaintPhase(%d) = %q, want a valid phase: %v", paint, phase, err)
		}
		found[phase] = true
	}
	if len(found) != len(Phases)+1 {
		t.Errorf("got the phases %v, want %q and all of %q", found, "", Phases)
	}
}
