package pricing

import (
	"encoding/json"
	"fmt"
	"time"
)

// guarded is how the state of an item and the last move of its price are stored:
// JSON that a person can read, of what differs from none. The price itself, and the
// price that is held with the time since when, have columns of their own.
type guarded struct {
	Side         Side      `json:"side,omitzero"` // of the held price: 1 a rise, -1 a fall
	EvidenceAt   time.Time `json:"evidenceAt,omitzero"`
	Readings     int       `json:"readings,omitzero"`
	ReleasedAt   time.Time `json:"releasedAt,omitzero"`
	SuspectUntil time.Time `json:"suspectUntil,omitzero"`
	LoneUntil    time.Time `json:"loneUntil,omitzero"`
	Move         *Move     `json:"move,omitempty"`
}

// EncodeGuard returns what is remembered of an item beside its price and the held
// one, empty where that is nothing, as for most items.
func EncodeGuard(s *State, m *Move) string {
	if m.Reference == 0 && s.SuspectUntil.IsZero() && s.LoneUntil.IsZero() && s.ReleasedAt.IsZero() {
		return ""
	}
	g := guarded{
		Side: s.Held.Side, EvidenceAt: s.Held.EvidenceAt, Readings: s.Held.Readings,
		ReleasedAt: s.ReleasedAt, SuspectUntil: s.SuspectUntil, LoneUntil: s.LoneUntil,
	}
	if m.Reference != 0 {
		g.Move = m
	}
	text, err := json.Marshal(g)
	if err != nil {
		return "" // only a year beyond 9999 fails
	}
	return string(text)
}

// DecodeGuard reads what EncodeGuard returned into a state, whose price and held
// price stay, and returns the last move.
func DecodeGuard(text string, s *State) (Move, error) {
	if text == "" {
		return Move{}, nil
	}
	var g guarded
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return Move{}, fmt.Errorf("stored state of a price's guard: %w", err)
	}
	s.Held.Side, s.Held.EvidenceAt, s.Held.Readings = g.Side, g.EvidenceAt, g.Readings
	s.ReleasedAt, s.SuspectUntil, s.LoneUntil = g.ReleasedAt, g.SuspectUntil, g.LoneUntil
	if g.Move == nil {
		return Move{}, nil
	}
	return *g.Move, nil
}
