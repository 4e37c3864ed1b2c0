package pricing

import "fmt"

// Status grades a price. A greater one is worse.
type Status uint8

// The statuses, best first.
const (
	OK Status = iota
	Thin
	Suspect
	Disputed
	Stale
	NoPrice
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
