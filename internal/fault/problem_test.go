package fault

import "testing"

// Busy and Damaged share the status of Unavailable. Logs, metrics, Retry-After and exit
// codes distinguish them.
func TestStatus_DiffersForEveryKind(t *testing.T) {
	seen := map[int]Kind{}
	for kind := Internal; kind <= Upstream; kind++ {
		status := kind.Status()
		if other, again := seen[status]; again {
			t.Errorf("kinds %d and %d: got the same status %d, want different ones", other, kind, status)
		}
		seen[status] = kind
	}
}
