package view

import "context"

// LimitRecent limits the bytes of the stream pages in memory.
func (r *FeedReader) LimitRecent(bytes int) { r.recent.limit = bytes }

// RecentUse returns the number of database reads for streams and the bytes of the pages in memory.
func (r *FeedReader) RecentUse() (reads int64, size int) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	return r.recent.reads, r.recent.size
}

// RenewState renews the state of all prices like one step of KeepState.
func (r *OverviewReader) RenewState(ctx context.Context) error { return r.renewState(ctx) }

// RenewDryRuns renews the forecasts like one step of KeepState.
func (r *JobReader) RenewDryRuns(ctx context.Context) error { return r.renewDryRuns(ctx) }

// RenewHeadline renews the headline like one step of KeepState.
func (r *OverviewReader) RenewHeadline(ctx context.Context) error { return r.renewHeadline(ctx) }
