package refresh

import (
	"time"

	"assay/internal/pricing"
)

// UnitMarket identifies a market in the response of a unit.
type UnitMarket struct{ Unit, Market int64 }

// DueNames counts the due items of one game.
type DueNames struct {
	Due
	Names int64 // distinct names among the due items
}

// PlannedName is a due name with the batch that waits for it.
type PlannedName struct {
	Name  string
	Batch int
}

// MarketName identifies a market of a provider.
type MarketName struct {
	Provider, Key, Title string
}

// ValidationResult is the validation result of one market in the response of a file.
type ValidationResult struct {
	Unit       FetchUnit
	Fetch      MarketFetch
	Quarantine string      // why the market's quotes are refused; "": they are good
	Refused    *Comparison // of a refused response
	Reused     bool        // an earlier response, for which only the outcome is stored
}

// NamedSnapshot is the stored quote of a market for an item.
type NamedSnapshot struct {
	MarketSnapshot
	Name, Phase string
}

// Learned is what the validation of a job learned about a game.
type Learned struct {
	AppID  int32
	Set    *pricing.Set      // level set for the prices; nil: the newest stored set remains valid
	Movers pricing.Movers    // quotes that moved far in about a day
	States []ValidationState // states of the markets that responded
}

// ValidationState is what validation stores about a market of a game for the next job.
type ValidationState struct {
	MarketID int64
	State    pricing.ValidationState
	History  pricing.History // good responses of the last eight days; nil: unchanged
}

// Retention configures which ended jobs are deleted.
type Retention struct {
	Age     time.Duration // minimum age of deleted jobs
	MinJobs int           // number of jobs of each kind that are always kept
	History time.Duration // age at which price points are folded into one row per day; 0: never
}
