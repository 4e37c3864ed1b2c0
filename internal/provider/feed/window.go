package feed

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxRow bounds one row of a response, in bytes.
const MaxRow = 1 << 20

// ErrRowTooLarge ends a response with a row of more than MaxRow bytes.
var ErrRowTooLarge = fmt.Errorf("a row exceeds %d bytes", MaxRow)

// window reads for a JSON decoder and refuses to let a single token or row grow
// beyond MaxRow: the decoder itself buffers whatever it is requested.
type window struct {
	src  io.Reader
	dec  *jsontext.Decoder
	read int64
}

func (w *window) Read(p []byte) (int, error) {
	if w.read-w.dec.InputOffset() > MaxRow {
		return 0, ErrRowTooLarge
	}
	n, err := w.src.Read(p)
	w.read += int64(n)
	return n, err
}

// NewDecoder returns a decoder of JSON that keeps a bounded part of src. The
// grammar is checked in full and strictly: invalid UTF-8 fails. Only duplicate
// names pass; the reader of the row decides what they mean.
func NewDecoder(src io.Reader) *jsontext.Decoder {
	w := &window{src: src}
	w.dec = jsontext.NewDecoder(w, jsontext.AllowDuplicateNames(true))
	return w.dec
}
