package view

// LimitRecent limits the bytes of the stream pages in memory.
func (r *FeedReader) LimitRecent(bytes int) { r.recent.limit = bytes }

// RecentUse returns the number of database reads for streams and the bytes of the pages in memory.
func (r *FeedReader) RecentUse() (reads int64, size int) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	return r.recent.reads, r.recent.size
}
