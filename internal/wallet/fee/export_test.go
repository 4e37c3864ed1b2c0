package fee

// Exported for tests.
var (
	HoldRules = holdRules
	AddRules  = addRules
)

// MaxFaults is the maximum number of reported errors of a document.
const MaxFaults = maxFaults
