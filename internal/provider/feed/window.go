package feed

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxRow is the maximum size of one row of a response, in bytes.
const MaxRow = 1 << 20

// ErrRowTooLarge means that a row has more than MaxRow bytes.
var ErrRowTooLarge = fmt.Errorf("a row exceeds %d bytes", MaxRow)

// window limits how much a JSON decoder buffers for one token or row. The decoder itself has
// no limit.
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

// NewDecoder returns a JSON decoder with a limited buffer. It requires strictly valid JSON and
// UTF-8. It accepts duplicate names, because the functions that read rows check for them.
func NewDecoder(src io.Reader) *jsontext.Decoder {
	w := &window{src: src}
	w.dec = jsontext.NewDecoder(w, jsontext.AllowDuplicateNames(true))
	return w.dec
}
