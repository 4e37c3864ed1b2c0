package view

// LimitRecent sets the limit of the pages of the stream in memory.
func (r *ItemReader) LimitRecent(bytes int) { r.recent.limit = bytes }

// RecentUse returns the reads of the database for streams, and the bytes of the pages in memory.
func (r *ItemReader) RecentUse() (reads int64, size int) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	return r.recent.reads, r.recent.size
}
