package feed

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxRow bounds one row of a response, in bytes.
const MaxRow = 1 << 20

// ErrRowTooLarge is returned for a row of more than MaxRow bytes.
var ErrRowTooLarge = fmt.Errorf("a row exceeds %d bytes", MaxRow)

// window stops a JSON decoder from buffering a token or row of more than MaxRow bytes: the
// decoder itself has no bound.
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

// NewDecoder returns a JSON decoder that buffers a bounded part of src. It checks the
// grammar strictly, UTF-8 included. It accepts duplicate names; the reader of a row handles
// them.
func NewDecoder(src io.Reader) *jsontext.Decoder {
	w := &window{src: src}
	w.dec = jsontext.NewDecoder(w, jsontext.AllowDuplicateNames(true))
	return w.dec
}
