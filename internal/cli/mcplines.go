package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpLines reads JSON-RPC messages, one per line, for the MCP library. It responds to a malformed line
// with an error and skips it. The library would end the session at such a line, and lose the responses
// to requests in progress.
type mcpLines struct {
	in   *bufio.Reader
	out  io.Writer
	line []byte // unread part of a valid line
}

// Read implements io.Reader.
func (l *mcpLines) Read(p []byte) (int, error) {
	for len(l.line) == 0 {
		line, whole, err := l.next()
		blank := len(bytes.TrimSpace(line)) == 0
		switch {
		case whole && !blank && validMessages(line):
			l.line = append(bytes.TrimSpace(line), '\n')
		case !whole || !blank:
			if refusal := l.refuse(); refusal != nil {
				return 0, refusal
			}
		}
		if err != nil && len(l.line) == 0 {
			return 0, err
		}
	}
	n := copy(p, l.line)
	l.line = l.line[n:]
	return n, nil
}

// next reads a line. If the line is longer than the library accepts, next skips it and returns false.
func (l *mcpLines) next() (line []byte, whole bool, err error) {
	for whole = true; ; {
		part, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) < mcp.DefaultMaxLineLength; whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// refuse responds to a malformed line, whose id is unknown.
func (l *mcpLines) refuse() error {
	_, err := io.WriteString(l.out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message. Send one message per line."}}`+"\n")
	return err
}

// validMessages reports whether a line has a message or a batch of messages.
func validMessages(line []byte) bool {
	lenient := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // as the library
	batch := []jsontext.Value{line}
	if !batch[0].IsValid(lenient) {
		return false // more than one value
	}
	if bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		if err := json.Unmarshal(line, &batch, lenient); err != nil || len(batch) == 0 {
			return false
		}
	}
	for _, message := range batch {
		if _, err := jsonrpc.DecodeMessage(message); err != nil {
			return false
		}
	}
	return true
}

// sharedWriter is a writer whose Write may be called concurrently. Its Close does nothing, so that the
// writer stays open at the end of a session.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *sharedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// Close implements io.Closer.
func (*sharedWriter) Close() error { return nil }
