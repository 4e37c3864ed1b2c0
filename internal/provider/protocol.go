package provider

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// KindOf returns the kind of a failed call. An error that is no *Error came from
// the caller's decode; its kind is empty.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Protocol returns an error for a response that is not what the provider
// promises. What it quotes of the response belongs at its end: there a Client
// also masks a secret that was cut in half.
func Protocol(provider, format string, args ...any) *Error {
	return &Error{Provider: provider, Kind: KindProtocol, Detail: fmt.Sprintf(format, args...)}
}

// SniffJSON returns body, buffered and past a byte order mark and leading white
// space, if it begins like a JSON object or array. An empty body, HTML, null and anything else are
// errors of KindProtocol, each distinguished and with the beginning of the response.
// A body that cannot be read fails with its own error.
func SniffJSON(provider string, body io.Reader) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(body, 64<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = br.Discard(3) // cannot fail: they are there
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
			return nil, fmt.Errorf("look at a body: %w", err) // cannot be: a byte was just read
		}
		if b == '{' || b == '[' {
			return br, nil
		}
		return nil, notJSON(provider, br)
	}
}

// notJSON returns the error for what br begins with instead.
func notJSON(provider string, br *bufio.Reader) *Error {
	head, _ := br.Peek(maxExcerpt) // what there is of it
	what := "no JSON object or array"
	switch {
	case bytes.HasPrefix(head, []byte("<")):
		what = "HTML instead of JSON"
	case bytes.HasPrefix(head, []byte("null")):
		what = "null instead of a JSON object or array"
	}
	return Protocol(provider, "%s: %s", what, printable(string(head), maxExcerpt))
}
