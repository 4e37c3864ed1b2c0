package pricing

import (
	"encoding/json"
	"fmt"
	"time"
)

// storedGuard is the stored form of the state of an item and the last move of its price. It is
// readable JSON without zero values. The price, the held price and the start of the hold
// are not included, because they have separate columns.
type storedGuard struct {
	Side         Side      `json:"side,omitzero"` // side of the held price: 1 a rise, -1 a fall
	EvidenceAt   time.Time `json:"evidenceAt,omitzero"`
	Readings     int       `json:"readings,omitzero"`
	ReleasedAt   time.Time `json:"releasedAt,omitzero"`
	SuspectUntil time.Time `json:"suspectUntil,omitzero"`
	LoneUntil    time.Time `json:"singleMarketUntil,omitzero"`
	Move         *Move     `json:"move,omitempty"`
}

// EncodeGuard encodes the state of an item without its price and held price. It returns ""
// if there is nothing to store, which is the case for most items.
func EncodeGuard(s *State, m *Move) string {
	if m.Reference == 0 && s.SuspectUntil.IsZero() && s.SingleMarketUntil.IsZero() && s.ReleasedAt.IsZero() {
		return ""
	}
	g := storedGuard{
		Side: s.Held.Side, EvidenceAt: s.Held.EvidenceAt, Readings: s.Held.Readings,
		ReleasedAt: s.ReleasedAt, SuspectUntil: s.SuspectUntil, LoneUntil: s.SingleMarketUntil,
	}
	if m.Reference != 0 {
		g.Move = m
	}
	text, err := json.Marshal(g)
	if err != nil {
		return "" // fails only for years after 9999
	}
	return string(text)
}

// DecodeGuard decodes the result of EncodeGuard into s and returns the last move. It does
// not change the price and the held price of s.
func DecodeGuard(text string, s *State) (Move, error) {
	if text == "" {
		return Move{}, nil
	}
	var g storedGuard
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return Move{}, fmt.Errorf("decode stored guard of a price: %w", err)
	}
	s.Held.Side, s.Held.EvidenceAt, s.Held.Readings = g.Side, g.EvidenceAt, g.Readings
	s.ReleasedAt, s.SuspectUntil, s.SingleMarketUntil = g.ReleasedAt, g.SuspectUntil, g.LoneUntil
	if g.Move == nil {
		return Move{}, nil
	}
	return *g.Move, nil
}
