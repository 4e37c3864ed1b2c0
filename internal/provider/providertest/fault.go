package providertest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Fault is one kind of faulty response.
type Fault struct {
	Name  string
	serve func(w http.ResponseWriter, r *http.Request, good http.Handler)
}

// Reset reads the request and resets the connection.
func Reset() Fault {
	return Fault{"reset", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn := hijack(w)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // makes Close send a TCP reset
		}
		_ = conn.Close()
	}}
}

// Garbage responds with data that is not HTTP.
func Garbage() Fault {
	return Fault{"garbage", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn := hijack(w)
		_, _ = conn.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n\r\n"))
		_ = conn.Close()
	}}
}

// CutBody announces the length of the good body and ends in the middle of it.
func CutBody() Fault {
	return Fault{"cut body", func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		send(w, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}}
}

// CutChunks ends in the middle of a chunked body.
func CutChunks() Fault {
	return Fault{"cut chunks", func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Del("Content-Length")
		send(w, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}}
}

// CutGzip sends half of the compressed good body as a complete response.
func CutGzip() Fault {
	return Fault{"cut gzip", func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		compressed := compress(body)
		send(w, compressed[:len(compressed)/2])
	}}
}

// Drip sends the good body one byte at a time, which is too slow for any client.
func Drip(every time.Duration) Fault {
	return Fault{"drip", func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Del("Content-Length")
		tick := time.NewTicker(every)
		defer tick.Stop()
		for i := range body {
			send(w, body[i:i+1])
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}}
}

// Silent reads the request and never responds.
func Silent() Fault {
	return Fault{"silent", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // a server detects a closed connection only while it reads
		<-r.Context().Done()
	}}
}

// SilentBody sends a good header without a body.
func SilentBody() Fault {
	return Fault{"silent body", func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, _ := goodResponse(r, good)
		copyHeader(w, header)
		w.WriteHeader(http.StatusOK)
		send(w, nil)
		<-r.Context().Done()
	}}
}

// Status responds with a status and header fields. The fields alternate between keys and
// values.
func Status(status int, fields ...string) Fault {
	return Fault{
		strings.TrimSpace(fmt.Sprintf("status %d %s", status, strings.Join(fields, " "))),
		func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			for i := 0; i+1 < len(fields); i += 2 {
				w.Header().Set(fields[i], fields[i+1])
			}
			http.Error(w, http.StatusText(status), status)
		},
	}
}

// Echo responds with a status and a body that quotes the request with its headers and query.
// Some real servers do that.
func Echo(status int) Fault {
	return Fault{"echo " + strconv.Itoa(status), func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "refused: %s\n", r.URL.RequestURI())
		_ = r.Header.Write(w)
	}}
}

// EchoAs is like Echo, but encodes each quoted text with spell.
func EchoAs(name string, status int, spell func(string) string) Fault {
	return Fault{"echo " + name + " " + strconv.Itoa(status), func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		for _, values := range r.URL.Query() {
			_, _ = fmt.Fprintln(w, "refused:", spell(values[0]))
		}
		for _, values := range r.Header {
			_, _ = fmt.Fprintln(w, spell(values[0]))
		}
	}}
}

// Redirect redirects the client to location.
func Redirect(location string) Fault {
	f := Status(http.StatusFound, "Location", location)
	f.Name = "redirect to " + location
	return f
}

// RedirectLoop redirects the client to the same address.
func RedirectLoop() Fault {
	return Fault{"redirect loop", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}}
}

// Body responds with the given body and status 200.
func Body(name, contentType, body string) Fault {
	return Fault{name, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		send(w, []byte(body))
	}}
}

// HTML responds 200 with an HTML page, like a bot check or a maintenance notice.
func HTML() Fault {
	return Body("html", "text/html; charset=utf-8",
		"<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head><body>checking, one, two</body></html>\n")
}

// Mutated passes the good body to mutate and responds with the result.
func Mutated(name string, mutate func([]byte) []byte) Fault {
	return Fault{name, func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Del("Content-Length")
		send(w, mutate(body))
	}}
}

// Encoding sends the good body uncompressed with a wrong content encoding.
func Encoding(name string) Fault {
	return Fault{"mislabelled " + name, func(w http.ResponseWriter, r *http.Request, good http.Handler) {
		header, body := goodResponse(r, good)
		copyHeader(w, header)
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", name)
		send(w, body)
	}}
}

// bombStep is the decompressed size of each gzip member of a bomb.
const bombStep = 16 << 20

// GzipBomb sends a small body that decompresses to size bytes: the start of an array and then
// spaces. Each gzip member decompresses to 16 MiB.
func GzipBomb(size int64) Fault {
	head, member := compress([]byte("[")), compress(bytes.Repeat([]byte(" "), bombStep))
	return Fault{"gzip bomb", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		send(w, head)
		for sent := int64(0); sent < size && r.Context().Err() == nil; sent += bombStep {
			send(w, member)
		}
	}}
}

// Endless sends data as fast as the client reads it and never stops.
func Endless() Fault {
	chunk := bytes.Repeat([]byte("[\n"), 32<<10)
	return Fault{"endless", func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}}
}

// HugeHeader responds with a header that is too large.
func HugeHeader() Fault {
	f := Status(http.StatusOK, "X-Padding", strings.Repeat("x", 1<<20))
	f.Name = "huge header"
	return f
}

// Deep responds with nested arrays.
func Deep(levels int) Fault {
	return Body("deep nesting", "application/json", strings.Repeat("[", levels)+strings.Repeat("]", levels))
}

// goodResponse returns the header and the uncompressed body of the good response.
func goodResponse(r *http.Request, good http.Handler) (http.Header, []byte) {
	plain := r.Clone(r.Context())
	plain.Header.Del("Accept-Encoding")
	rec := httptest.NewRecorder()
	good.ServeHTTP(rec, plain)
	return rec.Header(), rec.Body.Bytes()
}

func copyHeader(w http.ResponseWriter, header http.Header) {
	maps.Copy(w.Header(), header)
}

// send writes and flushes p. It ignores a client that closed the connection.
func send(w http.ResponseWriter, p []byte) {
	_, _ = w.Write(p)
	_ = http.NewResponseController(w).Flush()
}

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // the server supports HTTP/1 only
	}
	return conn
}

func compress(p []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(p) // a bytes.Buffer never fails
	_ = w.Close()
	return b.Bytes()
}
