package refresh

// BlobsRead counts the parts of stored responses that were read since the last call.
func (e *Engine) BlobsRead() int64 { return e.blobsRead.Swap(0) }
