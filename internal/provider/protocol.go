package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// KindOf returns the kind of a failed call; empty for an error of the caller's decode.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Protocol returns an error for a response that breaks the provider's format. Quote the
// response only at the end of the text: there the Client also masks a truncated secret.
func Protocol(provider, format string, args ...any) *Error {
	return &Error{Provider: provider, Kind: KindProtocol, Detail: fmt.Sprintf(format, args...)}
}

// SniffJSON skips a byte order mark and leading white space and returns the buffered body
// if it begins like a JSON object or array. Anything else (empty, HTML, null) is an error
// of KindProtocol that quotes the beginning. A read error is returned unchanged.
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

// notJSON returns the error for a body that begins with something else.
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
