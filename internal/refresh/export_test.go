package refresh

// BlobsRead counts the parts of stored responses that were read, and begins anew.
func (e *Engine) BlobsRead() int64 { return e.blobsRead.Swap(0) }
