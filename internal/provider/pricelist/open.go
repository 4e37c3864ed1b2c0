package pricelist

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"assay/internal/provider/feed"
)

// Compressions of lists.
const (
	compressionAuto = "auto"
	compressionNone = "none"
	compressionGzip = "gzip"
	compressionZstd = "zstd"
)

// maxWindow is the maximum window size of zstd in bytes. RFC 8878 recommends that decoders
// support at least 8 MB.
const maxWindow = 8 << 20

// errTooLarge is the error for a list with more than maxBytes bytes.
var errTooLarge = errors.New("the list has more bytes than maxBytes: raise maxBytes in PRICELIST_CONFIG")

const readBuffer = 32 << 10

// bounded is a reader that fails after left bytes or when its context ends.
type bounded struct {
	ctx  context.Context
	src  io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.src.Read(p)
	if int64(n) > b.left {
		return 0, errTooLarge
	}
	b.left -= int64(n)
	return n, err
}

// inflate decompresses src and removes a byte order mark. maxBytes limits both the
// compressed and the decompressed size. The caller must call close.
func inflate(ctx context.Context, src io.Reader, compression string, maxBytes int64) (r *bufio.Reader, close func(), err error) {
	in := bufio.NewReaderSize(&bounded{ctx: ctx, src: src, left: maxBytes}, readBuffer)
	magic, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	found := detect(magic)
	if compression == compressionAuto {
		compression = found
	} else if compression != found {
		return nil, nil, feed.Malformed("compression is set to %s, but the list uses %s", compression, found)
	}
	var plain io.Reader = in
	close, err = func() {}, nil
	switch compression {
	case compressionGzip:
		plain, err = gzip.NewReader(in)
	case compressionZstd:
		var dec *zstd.Decoder
		dec, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			plain, close = dec, dec.Close
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the compression header is truncated
	}
	if err != nil {
		return nil, nil, err
	}
	r = bufio.NewReaderSize(&bounded{ctx: ctx, src: plain, left: maxBytes}, readBuffer)
	if bom, _ := r.Peek(3); string(bom) == "\uFEFF" {
		_, _ = r.Discard(3) // cannot fail: the bytes are buffered
	}
	return r, close, nil
}

// detect returns the compression for the first bytes of a list.
func detect(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return compressionGzip
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return compressionZstd
	default:
		return compressionNone
	}
}

// sniff returns an error for common responses that are not lists: empty, null and HTML.
func sniff(r *bufio.Reader) error {
	head, err := r.Peek(512)
	if len(head) == 0 && err != io.EOF {
		return err
	}
	switch head = bytes.TrimSpace(head); {
	case len(head) == 0 && err == io.EOF:
		return feed.Malformed("the list is empty")
	case string(head) == "null":
		return feed.Malformed("expected a list, found null")
	case htmlLike(head):
		return feed.Malformed("expected a list, found an HTML page")
	}
	return nil
}

// htmlLike reports whether the text begins like an HTML or XML document.
func htmlLike(head []byte) bool {
	head = bytes.ToLower(head)
	for _, start := range []string{"<!doctype", "<html", "<head", "<body", "<!--", "<?xml"} {
		if bytes.HasPrefix(head, []byte(start)) {
			return true
		}
	}
	return false
}

// decode reads a list into r. The caller must then call finish to validate the list.
func decode(ctx context.Context, src io.Reader, r *rows) error {
	in, close, err := inflate(ctx, src, r.list.compression, r.list.maxBytes)
	if err != nil {
		return err
	}
	defer close()
	if err := sniff(in); err != nil {
		return err
	}
	switch r.list.format {
	case formatCSV:
		return readCSV(in, r)
	case formatNDJSON:
		return readNDJSON(in, r)
	default:
		return readJSON(in, r)
	}
}
