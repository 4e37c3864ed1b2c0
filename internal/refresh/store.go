package refresh

import (
	"time"

	"assay/internal/pricing"
)

// UnitMarket names a market's part of a unit's answer.
type UnitMarket struct{ Unit, Market int64 }

// DueNames counts what is due of one game.
type DueNames struct {
	Due
	Names int64 // distinct names among the due items
}

// PlannedName is a name that is due, and the batch that waits for it.
type PlannedName struct {
	Name  string
	Batch int
}

// MarketName identifies a market across providers.
type MarketName struct {
	Provider, Key, Title string
}

// Verdict is what became of a market's part of a file's answer.
type Verdict struct {
	Unit       Unit
	Fetch      MarketFetch
	Quarantine string // why it is refused; "": it is the newest good answer
	Reused     bool   // an earlier answer: only its outcome is noted
}

// StoredQuote is a market's last quote of an item.
type StoredQuote struct {
	Snapshot
	Name, Phase string
}

// Learned is what the validation of a job learned of one game.
type Learned struct {
	AppID    int32
	Set      *pricing.Set   // its prices are computed with; nil: nothing was learned, and the newest one counts
	Movers   pricing.Movers // quotes that moved by themselves
	Memories []MarketMemory // of the markets that responded
}

// MarketMemory is what validation remembers of one market of a game between runs.
type MarketMemory struct {
	MarketID int64
	State    pricing.MarketState
	History  pricing.History // its good responses of the last eight days; nil: as they are stored
}

// Retention says which ended jobs are removed.
type Retention struct {
	Age     time.Duration // older ones,
	MinJobs int           // except that the newest of each kind stay
}
