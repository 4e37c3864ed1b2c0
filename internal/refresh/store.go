package refresh

import (
	"time"

	"assay/internal/pricing"
)

// UnitMarket identifies a market's part of a unit's response.
type UnitMarket struct{ Unit, Market int64 }

// DueNames counts the due items of one game.
type DueNames struct {
	Due
	Names int64 // distinct names among the due items
}

// PlannedName is a due name, and the batch that waits for it.
type PlannedName struct {
	Name  string
	Batch int
}

// MarketName identifies a market across providers.
type MarketName struct {
	Provider, Key, Title string
}

// Verdict is the result of validating a market's part of a file's response.
type Verdict struct {
	Unit       Unit
	Fetch      MarketFetch
	Quarantine string // why it is refused; "": it is the newest good response
	Reused     bool   // an earlier response: only its outcome is stored
}

// StoredQuote is a market's last quote of an item.
type StoredQuote struct {
	Snapshot
	Name, Phase string
}

// Learned is what the validation of a job learned about one game.
type Learned struct {
	AppID  int32
	Set    *pricing.Set      // that its prices are computed with; nil: nothing was learned, and the newest one stays valid
	Movers pricing.Movers    // quotes that moved without the others
	States []ValidationState // of the markets that responded
}

// ValidationState is what validation stores about one market of a game between runs.
type ValidationState struct {
	MarketID int64
	State    pricing.MarketState
	History  pricing.History // its good responses of the last eight days; nil: unchanged
}

// Retention says which ended jobs are removed.
type Retention struct {
	Age     time.Duration // older ones,
	MinJobs int           // except that the newest of each kind stay
}
