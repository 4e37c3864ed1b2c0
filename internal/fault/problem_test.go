package fault

import "testing"

// Busy and Damaged have the status of Unavailable: logs, metrics, Retry-After and exit codes
// tell them apart.
func TestStatus_TellsEveryKindApart(t *testing.T) {
	seen := map[int]Kind{}
	for kind := Internal; kind <= Upstream; kind++ {
		status := kind.Status()
		if other, again := seen[status]; again {
			t.Errorf("kinds %d and %d are both answered with %d", other, kind, status)
		}
		seen[status] = kind
	}
}
