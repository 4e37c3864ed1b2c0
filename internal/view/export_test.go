package view

import "context"

// LimitRecent limits the bytes of the stream pages in memory.
func (s *Stream) LimitRecent(bytes int) { s.recent.limit = bytes }

// RecentUse returns the number of database reads for streams and the bytes of the pages in memory.
func (s *Stream) RecentUse() (reads int64, size int) {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	return s.recent.reads, s.recent.size
}

// RenewState renews the state of all prices like one step of KeepState.
func (r *OverviewReader) RenewState(ctx context.Context) error { return r.renewState(ctx) }

// RenewHeadline renews the headline like one step of KeepState.
func (r *OverviewReader) RenewHeadline(ctx context.Context) error { return r.renewHeadline(ctx) }
