package refresh

import (
	"time"

	"assay/internal/provider"
)

// UnitState is the state of a fetch unit.
type UnitState string

// The states of a unit. All but the first two are final.
const (
	UnitPending   UnitState = "pending"
	UnitRunning   UnitState = "running"
	UnitDone      UnitState = "done"
	UnitFailed    UnitState = "failed"
	UnitDeferred  UnitState = "deferred" // not sent: a budget, a circuit breaker or a retry-after
	UnitCancelled UnitState = "cancelled"
)

// Unit is one file, or one list of names, to fetch from a provider.
type Unit struct {
	ID           int64
	JobID        int64
	Provider     string
	AppID        int32
	File         string   // of a bulk provider; "" for Names
	Names        []string // distinct, of a provider that is queried by name
	Size         int64    // number of names; of names left for later, how many still are
	BatchFrom    int      // batches that wait for it, both included
	BatchTo      int
	Later        int // with UnitDeferred and without Names: how many names are left for later
	State        UnitState
	Token        int64
	Attempts     int64
	NotBefore    time.Time
	FetchedAt    time.Time
	StatedAt     time.Time // the provider's own time of the response; zero: it has none
	ResponseUnit int64     // the unit whose blobs hold the response
	Requests     int64     // of a claimed unit: those of this attempt
	Counted      int64     // of a claimed unit: requests of this attempt that are counted already
	Reserved     int64     // of a claimed unit: further requests that were counted before they are sent
	Detached     bool      // its job does not wait for it, or no longer, and does not use its response
	Background   bool      // a name that the background fetch requests; then Detached too
	Bytes        int64
	ErrorKind    string
	Error        string
}

// Claim selects a unit to claim.
type Claim struct {
	Provider   string
	Files      []string // of one of these files; nil: any
	Owner      string
	Reserve    int64 // requests that are counted with the claim, before they are sent
	Background bool  // if there is no such unit, one of the next name in the background
}

// Endpoint is something that can be requested from a configured provider.
type Endpoint struct {
	Provider string
	File     string // "": names
}

// ConcernsProvider reports whether the outcome of the unit says something about its provider.
// A unit that was not sent does not, nor one whose last names were not sent because the
// circuit breaker opened.
func (u *Unit) ConcernsProvider() bool {
	return u.State != UnitDeferred || (u.Requests > 0 && u.ErrorKind != string(provider.KindBreaker))
}

// KindPaused is the error kind of a unit that was not sent because its provider is paused.
// All other kinds are those of the provider package.
const KindPaused = "paused"

// isUsable reports whether the unit's job uses its response.
func (u *Unit) isUsable() bool { return u.State == UnitDone && !u.Detached }

// skipped reports whether nothing was sent, through no fault of its provider.
func (u *Unit) skipped() bool {
	if u.Detached {
		return (&provider.Error{Kind: provider.Kind(u.ErrorKind)}).Deferred()
	}
	return u.State == UnitDeferred
}

// skipReason returns why a unit was not sent, as its items show it.
func (u *Unit) skipReason() string {
	switch u.ErrorKind {
	case KindPaused:
		return SkipPaused
	case string(provider.KindBreaker), string(provider.KindRateLimited):
		return SkipBackoff
	default:
		return SkipBudget
	}
}
