package pricing

import (
	"fmt"
	"slices"
)

// statusNames are the statuses as the API names them, by Status.
var statusNames = [...]string{"ok", "thin", "suspect", "disputed", "stale", "noPrice"}

// String returns the name that the API gives the status.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// ParseStatus is the reverse of String.
func ParseStatus(text string) (Status, error) {
	if i := slices.Index(statusNames[:], text); i >= 0 {
		return Status(i), nil
	}
	return 0, fmt.Errorf("unknown status %.20q", text)
}

// MarshalText writes the name of the status.
func (s Status) MarshalText() ([]byte, error) {
	if int(s) >= len(statusNames) {
		return nil, fmt.Errorf("unknown status %d", uint8(s))
	}
	return []byte(statusNames[s]), nil
}

// UnmarshalText reads the name of a status.
func (s *Status) UnmarshalText(text []byte) error {
	v, err := ParseStatus(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// ParseMethod reads a value of MARKET_PRICE_ESTIMATE.
func ParseMethod(text string) (Method, error) {
	switch m := Method(text); m {
	case Consensus, Average, Median:
		return m, nil
	}
	return "", fmt.Errorf("unknown estimate %.20q: use consensus, average or median", text)
}

// ParseGuard reads a value of MARKET_PRICE_GUARD.
func ParseGuard(text string) (Guard, error) {
	switch g := Guard(text); g {
	case Flag, Hold:
		return g, nil
	}
	return "", fmt.Errorf("unknown guard %.20q: use flag or hold", text)
}

// String returns "unknown", "some" or "none".
func (s SalesSignal) String() string {
	switch s {
	case SalesSome:
		return "some"
	case SalesNone:
		return "none"
	default:
		return "unknown"
	}
}
