package refresh

import (
	"context"
	"time"

	"assay/internal/catalog"
	"assay/internal/event"
	"assay/internal/pricing"
	"assay/internal/provider"
)

// Store is what a refresh needs of the database. Reads see what was last
// committed.
type Store interface {
	// InTx runs fn in one write transaction. Its error may wrap
	// a commit whose outcome is unknown; every step here begins with the state
	// of its rows, so that doing it again is right in both cases.
	InTx(ctx context.Context, fn func(Tx) error) error

	// Recover gives back what former owners had claimed, and forgets them. Call it
	// before any worker starts, and only where all former owners are known to be
	// dead.
	Recover(ctx context.Context) error
	// Pulses returns the counters of all instances, and NoBeat for every owner of
	// claims that is none.
	Pulses(ctx context.Context) ([]Pulse, error)
	// EndSessions ends the transactions of an instance whose counter still stands
	// there: stopped in the middle of one, it would keep others from its rows.
	EndSessions(ctx context.Context, p Pulse) error

	Job(ctx context.Context, id int64) (Job, error)
	// QueuedJob returns the oldest job that has no plan yet, or nil.
	QueuedJob(ctx context.Context) (*Job, error)
	// FetchedJob returns a job in StageFetch all of whose files have come or
	// failed, with a file's first answer all of whose units have, or nil.
	FetchedJob(ctx context.Context) (*Job, error)
	// EstimatedJob returns a job in StageEstimate without open batches, or nil.
	EstimatedJob(ctx context.Context) (*Job, error)
	// ApplyingJob returns a job in StageApply, or nil.
	ApplyingJob(ctx context.Context) (*Job, error)
	// DueByApp counts what Rules would plan, by game.
	DueByApp(ctx context.Context, r Rules) (map[int32]DueNames, error)
	// Budget tells what a host of a source leaves to all who ask it, and until when
	// it wants to be left alone; the zero time: it does not.
	Budget(ctx context.Context, source string, host provider.Host) (b provider.Budget, blockedUntil time.Time, err error)
	// HasDueMissing reports whether an entry of the missing-price queue is due
	// and in no job's work.
	HasDueMissing(ctx context.Context, r Rules) (bool, error)

	BatchItems(ctx context.Context, b Batch) ([]Item, error)
	// JobUnits returns the job's units, without names.
	JobUnits(ctx context.Context, jobID int64) ([]Unit, error)
	// BatchUnits returns the units that a batch waited for, with names.
	BatchUnits(ctx context.Context, b Batch) ([]Unit, error)
	// Blobs calls fn for the blobs of the units in the buckets, ordered by bucket
	// and unit. fn must not keep the data.
	Blobs(ctx context.Context, units, buckets []int64, fn func(Blob) error) error
	// Releases reports whether a batch that waits for a unit waits for none that is
	// open.
	Releases(ctx context.Context, u Unit) (bool, error)
	// Outcomes returns what became of each market of each file of a job; of one
	// that an earlier unit answers and that is not judged yet, what became of
	// that.
	Outcomes(ctx context.Context, jobID int64) (map[UnitMarket]MarketFetch, error)
	// MarketFiles returns the newest good answers of all markets' files.
	MarketFiles(ctx context.Context) ([]MarketFile, error)
	// Waiting returns the items of the missing-price queue in the name buckets from
	// (included) to (excluded) that are due later and that the job does not work on.
	Waiting(ctx context.Context, job Job, from, to int) ([]WaitingItem, error)
	// JobLevels returns what a job's prices are computed with, by game; a game of which
	// nothing was learned is absent.
	JobLevels(ctx context.Context, jobID int64) (map[int32]Levels, error)
	// PastPrices returns the accepted prices of items that the guard compares with.
	PastPrices(ctx context.Context, items []int64, now time.Time) (map[int64]PastPrices, error)
	// LearnedAt returns when the newest level set of a game was learned; zero: never.
	LearnedAt(ctx context.Context, app int32) (time.Time, error)
	// SameResponse reports whether two units brought the same bytes, in all parts.
	SameResponse(ctx context.Context, a, b int64) (bool, error)
	// LevelSet returns the newest level set of a game, or nil.
	LevelSet(ctx context.Context, app int32) (*pricing.Set, error)
	// StoredQuotes calls fn for the stored quotes of a game. fn must not keep what it
	// gets.
	StoredQuotes(ctx context.Context, app int32, fn func(*StoredQuote)) error
	// MarketMemories returns what validation remembers of a game's markets, beside their
	// responses.
	MarketMemories(ctx context.Context, app int32) (map[int64]pricing.MarketState, error)
	// MarketHistory returns a market's good responses of the last eight days.
	MarketHistory(ctx context.Context, app int32, market int64) (pricing.History, error)
	// Rates returns a set of exchange rates by its id, none for 0.
	Rates(ctx context.Context, set int64) (pricing.Rates, error)
	// PausedSources names the sources that an operator has paused.
	PausedSources(ctx context.Context) (map[string]bool, error)
	// WaitingJobs returns the jobs that wait for files of a source (nil: anything of
	// it) that are not claimed.
	WaitingJobs(ctx context.Context, source string, files []string) ([]int64, error)
	// ApplyShards returns how many shards a job has, and how many of them are not
	// done.
	ApplyShards(ctx context.Context, jobID int64) (all, open int, err error)
}

// UnitMarket names a market's part of a unit's answer.
type UnitMarket struct{ Unit, Market int64 }

// DueNames counts what is due of one game.
type DueNames struct {
	Due
	Names int64 // distinct names among the due items
}

// Tx is a write transaction. Now is its moment.
type Tx interface {
	Now() time.Time

	// InsertJob makes a job, queued. Where a job of the kind is live already,
	// it makes none and returns that one's id and false.
	InsertJob(j Job) (id int64, made bool, err error)
	// DueByApp counts what Rules would plan, by game, but not the names.
	DueByApp(r Rules) (map[int32]DueNames, error)
	// PlanItems makes a job's items and its batches; batches divides
	// catalog.Buckets.
	PlanItems(jobID int64, r Rules, batches int) error
	// PlannedByApp counts a job's pending items, by game.
	PlannedByApp(jobID int64) (map[int32]int64, error)
	// DueNames lists the distinct names of a job's pending items of a game in
	// the order of their buckets and then of their own.
	DueNames(jobID int64, app int32) ([]PlannedName, error)
	// WantedNames lists the names of a job's pending items, with fresh also of those
	// that only their TTL leaves out, by game, bucket and name: one for each item.
	WantedNames(jobID int64, source string, fresh bool) ([]WantedName, error)
	// PlaceNames plans what is requested from a provider in the background. A plan of all
	// that matters takes over what the one before it left.
	PlaceNames(jobID int64, source string, names []PlacedName, all bool) error
	// AskedLast returns the name that bulk jobs asked a source for last; "": for
	// none yet.
	AskedLast(source string, app int32) (string, error)
	// NewestUnit returns the last ended unit of a bulk source's file whose
	// answer is still stored, or nil.
	NewestUnit(source string, app int32, file string) (*Unit, error)
	// DropDetached cancels what ended jobs still mean to request, and is not under way.
	DropDetached() error
	InsertUnits(units []Unit) error
	// StartJob moves a queued job to its first stage after the plan. It returns
	// false if the job is no longer queued.
	StartJob(jobID int64, batches int, rateSet int64) (bool, error)

	// Reclaim gives back what is claimed in owner's name, but for the units and
	// batches that are in its hands.
	Reclaim(owner string, units []int64, batches []Batch) error

	// Register notes an instance; one that is known already keeps its row with
	// another counter.
	Register(i Instance) error
	// Beat moves an instance's counter on, and notes its report and how many syncs have
	// begun there. It returns false
	// where the instance is not known any more.
	Beat(owner, report string, syncs int64) (bool, error)
	// RemoveInstance removes an instance whose counter still stands there, and
	// gives back what it had claimed. It returns false where it has moved on, or
	// is removed already.
	RemoveInstance(p Pulse) (bool, error)
	// ForgoUnits ends what live jobs still meant to ask for and that no instance
	// can.
	ForgoUnits() error

	// ClaimUnit takes a unit of the source that may be asked now, or nil. What
	// is left to ask a paused source is put off instead.
	ClaimUnit(c Claim) (*Unit, error)
	// ReserveRequests counts more requests of a claimed unit, before they are
	// sent. It returns false, and counts nothing, where the claim is no longer
	// valid.
	ReserveRequests(u Unit, more int64) (bool, error)
	// EndUnit stores the end of a unit and its answer. It returns false, and
	// stores nothing but the requests spent, where the claim is no longer valid;
	// nothing at all where the unit's end is stored already. Late reports that the
	// job went on without it.
	EndUnit(u Unit, markets []MarketFetch, blobs []Blob) (ended bool, late Late, err error)
	// DetachUnits lets a job go on without what it still waits for of a host, and
	// returns how many units that is.
	DetachUnits(s Silence) (int64, error)
	// SplitUnit makes what is left of a unit that was just ended units of their
	// own; u.Names are those that it keeps. Without rest it does nothing.
	SplitUnit(u Unit, rest []Unit) error
	// ReturnUnit gives a unit back, not to be asked before u.NotBefore.
	ReturnUnit(u Unit) error
	// NoteAsked notes that the names of a unit were requested from a provider.
	NoteAsked(u Unit) error
	// NoteSource notes that a fetch of a source's file, or for "" a request for names,
	// succeeded or, with a failure, why it did not.
	NoteSource(source, file, failure string) error
	// NoteMarkets notes why markets were not answered for.
	NoteMarkets(markets []int64, failure string) error

	// ClaimSlow claims the name that is to be requested next from a provider in the
	// background, or nil; of a paused provider there is none. The caller holds no other
	// name of the provider.
	ClaimSlow(source, owner string) (*SlowName, error)
	// ReserveSlow counts a request for a claimed name, before it is sent. It returns
	// false, and counts nothing, where it must not be sent any more.
	ReserveSlow(n SlowName) (bool, error)
	// ReturnSlow gives a name back.
	ReturnSlow(n SlowName) error
	// EndSlow notes that a name was requested from a provider, and the response. It
	// returns false, and writes nothing, where the claim is no longer valid.
	EndSlow(n SlowName, markets []MarketFetch) (bool, error)
	// NamedItems returns the items of names, by id.
	NamedItems(app int32, names []string) ([]NamedItem, error)
	// KeepQuotes writes the quotes of items, and makes jobs that have read them already
	// read them again. If one of the items was estimated since it was read, the
	// transaction runs again. Missing prices among them are due soon.
	KeepQuotes(items []NamedItem) error

	// AddItems makes items of a game of those keys that are none yet.
	AddItems(app int32, keys []catalog.Key) error

	// Judge stores what became of the markets of a fetched job's files and lets
	// it go on to estimate. It returns false if the job is not in StageFetch.
	Judge(jobID int64, verdicts []Judgement, learned []Learned) (bool, error)
	// DueListed makes those waiting entries of the missing-price queue due at once
	// that are listed with another price than the market's snapshot has, if it has
	// any. It reports whether there were some.
	DueListed(listed []Listed) (bool, error)

	ClaimBatch(owner string) (*Batch, error)
	ReturnBatch(b Batch) error
	// StoreEstimates writes a batch. It returns false, and writes nothing, where the
	// claim is no longer valid, and ErrConflict where an item was estimated by
	// another job in between.
	StoreEstimates(b Batch, s Estimates) (bool, error)

	// EndEstimating moves a job without open batches on to StageApply.
	EndEstimating(jobID int64) error
	// OpenShards divides the inventory rows into lanes for a job in StageApply,
	// unless it has some.
	OpenShards(jobID int64, shards int) error
	// ApplyRange copies prices onto the next rows of a shard that no other worker
	// has, a range of so many ids: those that have another value, or all if most
	// are said to have. It reports whether there was such a shard. Unless it is to
	// be inOrder, the transaction may fail where others write those rows, and is
	// then run again.
	ApplyRange(jobID, ids int64, most, inOrder bool) (bool, error)
	// ApplyBatch copies the prices that a batch changed onto all their rows,
	// and notes the next batch as the job's cursor, if that stood at this one.
	ApplyBatch(jobID int64, batch int) (rows int64, err error)
	// FinishJob ends a job in StageApply, with the markets that it lacks, and drops
	// the answers that nothing needs any more. It returns the job as it ended, or nil
	// where it was not in that stage.
	FinishJob(jobID int64, markets []event.MarketGap) (*Job, error)

	// CancelJob cancels what is pending of a live job. What is estimated stays
	// estimated and is applied; what it took of the missing-price queue, or without a
	// plan was about to take, is due again after the pause.
	CancelJob(jobID int64, pause time.Duration) error
	FailJob(jobID int64, lastError string) error
	// Retain removes ended jobs; see Retention. It returns how many.
	Retain(r Retention, most int) (int, error)
	// RetainEvents removes events that are older, and those that are too many.
	RetainEvents(age time.Duration) error

	MarketIDs(markets []MarketName) (map[MarketName]int64, error)
	// RateSet returns the id of these rates, which are noted if they are new.
	RateSet(rates pricing.Rates) (int64, error)
	PauseSource(source string, paused bool) error
	// AcceptSource vouches for the refused answers of a source's market, of all
	// its markets where none is named. It returns how many there were.
	AcceptSource(source, market string) (int64, error)
	KnowsItem(key catalog.Key) (bool, error)
	AcceptItem(key catalog.Key) (bool, error)
}

// PlannedName is a name that is due, and the batch that waits for it.
type PlannedName struct {
	Name  string
	Batch int
}

// MarketName identifies a market across sources.
type MarketName struct {
	Source, Key, Title string
}

// Judgement is what became of a market's part of a file's answer.
type Judgement struct {
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
