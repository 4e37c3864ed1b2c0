package pricing

import "fmt"

// Status is the quality of a price. A larger value is worse.
type Status uint8

// The statuses, best first.
const (
	OK       Status = iota // enough quotes agree
	Thin                   // few quotes, or the interval is wide
	Suspect                // the guard doubts the price
	Disputed               // no majority of the quotes agrees
	Stale                  // no usable quote; the last price stays
	NoPrice                // no usable quote and no last price
)

// statusNames contains the names of the statuses in the API.
var statusNames = [...]string{"ok", "thin", "suspect", "disputed", "stale", "noPrice"}

// String returns the name of the status in the API.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}
