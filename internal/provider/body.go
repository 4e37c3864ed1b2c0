package provider

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the window that RFC 8878 requires decoders to support and
// senders not to exceed (RFC 9659 makes it a must for HTTP).
const maxZstdWindow = 8 << 20

// errTooLarge ends a body that inflates to more than its limit.
var errTooLarge = errors.New("body exceeds its limit")

// errEncoding is a response in a content encoding that we do not speak.
var errEncoding = errors.New("unknown content encoding")

// wire reads a response as it comes and counts it.
type wire struct {
	src   io.Reader
	meter *Meter
	bytes int64
	err   error // what ended the reading, other than the end
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.src.Read(p)
	w.bytes += int64(n)
	w.meter.AddBytes(int64(n))
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// body is a response, inflated and bounded. Its first failure stays.
type body struct {
	wire *wire
	src  io.Reader
	left int64 // bytes that may still come
	err  error // why reading failed; nil at a proper end
	stop func()
}

// newBody returns the inflated form of what w reads. Close it.
func newBody(w *wire, encoding string, limit int64) (*body, error) {
	b := &body{wire: w, left: limit, stop: func() {}}
	// The decoders use a ByteReader, or wrap the reader in one.
	buffered := bufio.NewReaderSize(w, 32<<10)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		b.src = w
	case "gzip", "x-gzip":
		b.src = &lazyGzip{src: buffered}
	case "br":
		b.src = brotli.NewReader(buffered)
	case "zstd":
		dec, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, fmt.Errorf("start inflating: %w", err)
		}
		b.src, b.stop = dec, dec.Close
	default:
		return nil, errEncoding
	}
	return b, nil
}

// Close frees what inflating holds. It does not close the connection.
func (b *body) Close() { b.stop() }

// Read fails with errTooLarge once more than the limit came, with the wire's
// own error when the wire failed, or with that of the inflater.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.src.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), errTooLarge
	}
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err = err
		if b.wire.err != nil {
			b.err = b.wire.err
		}
		err = b.err
	}
	return n, err
}

// lazyGzip reads the gzip header with the first Read, so that a body that never
// comes fails where it is read.
type lazyGzip struct {
	src *bufio.Reader
	gz  *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.gz == nil {
		if _, err := l.src.Peek(1); err == io.EOF {
			return 0, io.EOF // nothing at all is an empty body
		}
		gz, err := gzip.NewReader(l.src)
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		l.gz = gz
	}
	return l.gz.Read(p)
}
