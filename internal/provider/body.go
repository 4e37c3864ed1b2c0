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

// maxZstdWindow is the maximum window size, in bytes. RFC 9659 forbids larger windows in HTTP.
const maxZstdWindow = 8 << 20

// errTooLarge means that the decompressed body exceeds its limit.
var errTooLarge = errors.New("body exceeds its limit")

// errEncoding means that the client does not support the content encoding.
var errEncoding = errors.New("unsupported content encoding")

// wire reads a response from the connection and counts its bytes.
type wire struct {
	src   io.Reader
	meter *Meter
	bytes int64
	err   error // why reading failed; nil after a complete read
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

// body is a decompressed response of limited size. After its first error, each Read returns
// that error.
type body struct {
	wire *wire
	src  io.Reader
	left int64 // bytes until the limit is reached
	err  error // why reading failed; nil after a complete read
	stop func()
}

// newBody returns the decompressed body that w reads. The caller must close it.
func newBody(w *wire, encoding string, limit int64) (*body, error) {
	b := &body{wire: w, left: limit, stop: func() {}}
	// The decoders need an io.ByteReader. Without one, each adds another buffer.
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
			return nil, fmt.Errorf("start decompression: %w", err)
		}
		b.src, b.stop = dec, dec.Close
	default:
		return nil, errEncoding
	}
	return b, nil
}

// Close releases the decoder. It does not close the connection.
func (b *body) Close() { b.stop() }

// Read returns errTooLarge when the body exceeds its limit. If the connection fails, it
// returns the connection's error instead of the decoder's.
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

// lazyGzip reads the gzip header at the first Read. The constructor therefore cannot fail, and
// an empty body is valid.
type lazyGzip struct {
	src *bufio.Reader
	gz  *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.gz == nil {
		if _, err := l.src.Peek(1); err == io.EOF {
			return 0, io.EOF // an empty body is valid
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
