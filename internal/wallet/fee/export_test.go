package fee

// What the tests of the SQL call.
var (
	HoldRules = holdRules
	AddRules  = addRules
)

// MaxFaults is how many faults of a document are reported.
const MaxFaults = maxFaults
