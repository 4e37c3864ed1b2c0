package refresh

import (
	"context"

	"assay/internal/db"
)

// BlobsRead counts the parts of stored responses that were read since the last call.
func (e *Engine) BlobsRead() int64 { return e.blobsRead.Swap(0) }

// Each method does one piece of work of its stage, as the dispatcher does.

func (e *Engine) Plan(ctx context.Context) (bool, error)     { return e.planner.Plan(ctx) }
func (e *Engine) Missing(ctx context.Context) (bool, error)  { return e.planner.Missing(ctx) }
func (e *Engine) Estimate(ctx context.Context) (bool, error) { return e.estimator.Estimate(ctx) }
func (e *Engine) Apply(ctx context.Context) (bool, error)    { return e.applier.Apply(ctx) }

func (e *Engine) Fetch(ctx context.Context, provider, host string) (bool, error) {
	return e.fetcher.Fetch(ctx, provider, host)
}

// FailFast begins a transaction that applies a range.
const FailFast = failFast

// FoldPoints is the maximum number of points that one transaction folds.
const FoldPoints = foldPoints

// The tests run these SQL functions on both databases.
var (
	AbandonUnits      = abandonUnits
	AcceptItems       = acceptItems
	ItemIDs           = itemIDs
	AcceptProvider    = acceptProvider
	ApplyBatch        = applyBatch
	ApplyRange        = applyNextRange
	ApplyShards       = applyShards
	BatchUnits        = batchUnits
	Blobs             = readBlobs
	CancelJob         = cancelJob
	ClaimQueued       = claimQueued
	ClaimValidation   = claimValidation
	EndsFiles         = endsFiles
	ReleaseValidation = releaseValidation
	JobsToEstimateSQL = jobsToEstimateSQL
	IsFetchedSQL      = isFetched
	DropBlobsSQL      = dropBlobsSQL
	DueNamesOf        = dueNamesOf
	DueNamesSQL       = dueNames
	CandidatesSQL     = candidateNamesSQL
	EncodeQuotes      = encodeQuotes
	EndUnit           = endUnit
	FailJob           = failJob
	HasWork           = hasWork
	HasDueMissing     = hasDueMissing
	JobUnits          = jobUnits
	WriteNamedQuotes  = writeNamedQuotes
	FilesChanged      = filesChanged
	MarketFiles       = marketFiles
	MarketHistory     = marketHistory
	ValidationStates  = validationStates
	NamedItems        = namedItems
	NewestUnit        = newestUnit
	NoteMarkets       = noteMarkets
	NoteProvider      = noteProvider
	OpenShards        = openShards
	PauseProvider     = pauseProvider
	PausedProviders   = pausedProviders
	ReadApplyingJob   = readApplyingJob
	ReadEstimatedJob  = readEstimatedJob
	ReadHeartbeats    = readHeartbeats
	ReadOutcomes      = readOutcomes
	ReadPastPrices    = readPastPrices
	ReadQueuedJob     = readQueuedJob
	Reclaim           = reclaim
	Recover           = recoverClaims
	UnblocksBatch     = unblocksBatch
	RemoveInstance    = removeInstance
	ReserveRequests   = reserveRequests
	Retain            = retain
	ReturnBatch       = returnBatch
	ReturnUnit        = returnUnit
	SplitUnit         = splitUnit
	WriteHeartbeat    = writeHeartbeat
)

// CachedReader reads stored responses as a process with a response cache does.
type CachedReader struct{ *process }

func NewCachedReader(s *db.DB) CachedReader { return CachedReader{&process{store: s}} }

func (r CachedReader) Add(unit int64, blobs []Blob) { r.responses.add(unit, blobs) }

func (r CachedReader) Read(ctx context.Context, units, buckets []int64, fn func(Blob) error) error {
	return r.readBlobs(ctx, units, buckets, fn)
}

func (r CachedReader) Cached() (units, bytes int) { return len(r.responses.units), r.responses.size }

const ResponseCacheSize = responseCacheSize

// ReadFetchedJob returns a job that a process can validate, or nil.
func ReadFetchedJob(ctx context.Context, s *db.DB, owner string) (*Job, error) {
	fetching, _, err := jobsToEstimate(ctx, s, owner)
	if err != nil {
		return nil, err
	}
	return readFetchedJob(ctx, s, fetching)
}
