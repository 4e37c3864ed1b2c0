package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// KindOf returns the kind of a failed call. It returns "" if err is not an *Error.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Protocol returns an error for a response that breaks the provider's format. If the text
// quotes the response, put the quotation at the end. The Client masks a truncated secret only
// there.
func Protocol(provider, format string, args ...any) *Error {
	return &Error{Provider: provider, Kind: KindProtocol, Detail: fmt.Sprintf(format, args...)}
}

// SniffJSON checks that a body begins like a JSON object or array and returns the body. It
// skips a byte order mark and leading white space. For any other beginning (empty, HTML,
// null), it returns an error of KindProtocol that quotes the beginning. It returns a read
// error unchanged.
func SniffJSON(provider string, body io.Reader) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(body, 64<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = br.Discard(3) // cannot fail: the bytes are buffered
	}
	for {
		b, err := br.ReadByte()
		switch {
		case err == io.EOF:
			return nil, Protocol(provider, "empty body instead of JSON")
		case err != nil:
			return nil, err
		case b == ' ' || b == '\t' || b == '\r' || b == '\n':
			continue
		}
		if err := br.UnreadByte(); err != nil {
			return nil, fmt.Errorf("read a response body: %w", err) // cannot happen: one byte is buffered
		}
		if b == '{' || b == '[' {
			return br, nil
		}
		return nil, notJSON(provider, br)
	}
}

// notJSON returns the error for a body that does not begin like a JSON object or array.
func notJSON(provider string, br *bufio.Reader) *Error {
	head, _ := br.Peek(maxExcerpt) // an error leaves a shorter excerpt
	what := "expected a JSON object or array"
	switch {
	case bytes.HasPrefix(head, []byte("<")):
		what = "HTML instead of JSON"
	case bytes.HasPrefix(head, []byte("null")):
		what = "null instead of a JSON object or array"
	}
	return Protocol(provider, "%s: %s", what, printable(string(head), maxExcerpt))
}
