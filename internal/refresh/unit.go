package refresh

import (
	"time"

	"assay/internal/provider"
)

// UnitState is where a fetch unit is in its life.
type UnitState string

// The states of a unit. All but the first two are ends.
const (
	UnitPending   UnitState = "pending"
	UnitRunning   UnitState = "running"
	UnitDone      UnitState = "done"
	UnitFailed    UnitState = "failed"
	UnitDeferred  UnitState = "deferred" // a budget, a breaker or an order to wait kept it from being asked
	UnitCancelled UnitState = "cancelled"
)

// Unit is one thing to ask a provider for.
type Unit struct {
	ID         int64
	JobID      int64
	Provider   string
	AppID      int32
	File       string   // of a bulk provider; "" for Names
	Names      []string // distinct, of a provider that is asked by name
	Size       int64    // how many they are, or were; of what is left for later, how many still are
	BatchFrom  int      // batches that wait for it, both included
	BatchTo    int
	Later      int // with UnitDeferred and without Names: so many names are left for later
	State      UnitState
	Token      int64
	Attempts   int64
	NotBefore  time.Time
	FetchedAt  time.Time
	StatedAt   time.Time // the provider's own time of the answer; zero: it has none
	BlobUnit   int64     // whose blobs hold the answer
	Requests   int64     // of a claimed unit: those of this attempt
	Counted    int64     // of a claimed unit: requests of this attempt that are counted already
	Reserved   int64     // of a claimed unit: those beside that were noted before they are sent
	Detached   bool      // its job does not, or no longer, wait for it, and does not use its response
	Background bool      // it is a name of the background fetch; then Detached too
	Bytes      int64
	ErrorKind  string
	Error      string
}

// Claim says which unit is wanted.
type Claim struct {
	Provider   string
	Files      []string // one that asks for one of these; nil: any
	Owner      string
	Reserve    int64 // requests that are counted with the claim, before they are sent
	Background bool  // if there is no such unit, one of the next name in the background
}

// Endpoint is something that can be requested from a configured provider.
type Endpoint struct {
	Provider string
	File     string // "": names
}

// ConcernsProvider reports whether how the unit ended says something of its provider: not
// where it was not asked, be it from the start or, with its breaker open, for
// the rest of its names.
func (u *Unit) ConcernsProvider() bool {
	return u.State != UnitDeferred || (u.Requests > 0 && u.ErrorKind != string(provider.KindBreaker))
}

// KindPaused is the error kind of a unit that was not sent since an operator had
// paused its provider; all others are kinds of the provider package.
const KindPaused = "paused"

// counts reports whether the unit's job uses its response.
func (u *Unit) counts() bool { return u.State == UnitDone && !u.Detached }

// skipped reports whether nothing was sent, for no fault of its provider.
func (u *Unit) skipped() bool {
	if u.Detached {
		return (&provider.Error{Kind: provider.Kind(u.ErrorKind)}).Deferred()
	}
	return u.State == UnitDeferred
}

// skipReason is why a unit was not sent, as items tell it.
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
