package fee

// Exported for tests.
var (
	HoldRules = holdRules
	AddRules  = addRules
)

// MaxFaults is the maximum number of errors that Decode reports.
const MaxFaults = maxFaults
