package refresh

import (
	"time"

	"assay/internal/provider"
)

// UnitState is the state of a fetch unit.
type UnitState string

// The states of a unit. UnitPending and UnitRunning are open, the others are final.
const (
	UnitPending   UnitState = "pending"
	UnitRunning   UnitState = "running"
	UnitDone      UnitState = "done"
	UnitFailed    UnitState = "failed"
	UnitDeferred  UnitState = "deferred" // not sent because of a budget, a circuit breaker or a retry-after
	UnitCancelled UnitState = "cancelled"
)

// FetchUnit is one file, or one list of names, to fetch from a provider.
type FetchUnit struct {
	ID             int64
	JobID          int64
	Provider       string
	AppID          int32
	File           string   // file of a bulk provider; "": the unit has Names
	Names          []string // distinct names, for a provider that is queried by name
	Size           int64    // number of names; if they are deferred, how many are still deferred
	BatchFrom      int      // first and last batch that wait for the unit
	BatchTo        int
	DeferredNames  int // number of names that the provider's budget deferred
	State          UnitState
	Token          int64
	Attempts       int64
	NotBefore      time.Time
	FetchedAt      time.Time
	StatedAt       time.Time // time that the response states; zero: none
	ResponseUnitID int64     // id of the unit that stored the response
	Requests       int64     // requests; of a claimed unit, only those of this attempt
	Counted        int64     // requests of this attempt that are stored already
	Reserved       int64     // further requests that are stored before they are sent
	Detached       bool      // its job neither waits for it nor uses its response
	Background     bool      // a name of the background fetch; Detached is also true
	Bytes          int64
	Silent         []int64 // ids of markets that the response lacks although the provider was asked for them
	ErrorKind      string
	Error          string
}

// Claim selects the unit to claim.
type Claim struct {
	Provider   string
	Files      []string // one of these files; nil: any file
	Owner      string
	Reserve    int64 // requests to count before they are sent
	Background bool  // without such a unit, claim the next name of the background fetch
}

// Endpoint is a file or the names interface of a configured provider.
type Endpoint struct {
	Provider string
	File     string // "": names
}

// ConcernsProvider reports whether the unit's outcome reflects the health of its provider. A
// unit that was not sent does not. A unit whose last names were stopped by the circuit
// breaker does not either.
func (u *FetchUnit) ConcernsProvider() bool {
	return u.State != UnitDeferred || (u.Requests > 0 && u.ErrorKind != string(provider.KindBreaker))
}

// KindPaused is the error kind of a unit that was not sent because its provider is paused.
// Package provider defines the other kinds.
const KindPaused = "paused"

// isUsable reports whether the unit has a response that its job uses.
func (u *FetchUnit) isUsable() bool { return u.State == UnitDone && !u.Detached }

// skipped reports whether no request was sent, for a reason other than a failure.
func (u *FetchUnit) skipped() bool {
	if u.Detached {
		return (&provider.Error{Kind: provider.Kind(u.ErrorKind)}).Deferred()
	}
	return u.State == UnitDeferred
}

// skipReason returns the skip reason for the unit's items.
func (u *FetchUnit) skipReason() string {
	switch u.ErrorKind {
	case KindPaused:
		return SkipPaused
	case string(provider.KindBreaker), string(provider.KindRateLimited):
		return SkipBackoff
	default:
		return SkipBudget
	}
}
