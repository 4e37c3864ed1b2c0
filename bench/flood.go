package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// loadConnections is the number of concurrent connections. Each sends its next request after a
// response.
const loadConnections = 32

// request returns the bytes of an HTTP request.
func request(method, addr, path, token string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	var b bytes.Buffer
	err = r.Write(&b)
	return b.Bytes(), err
}

// flood sends requests round-robin over all connections for duration d. It returns the number
// of responses per second. It uses little processor time, because the server needs the same
// two cores.
func flood(ctx context.Context, addr string, requests [][]byte, d time.Duration) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	responses := make([]int, loadConnections)
	errs := make([]error, loadConnections)
	var wg sync.WaitGroup
	began := time.Now()
	for n := range loadConnections {
		wg.Go(func() { responses[n], errs[n] = floodOne(ctx, addr, requests[n%len(requests):], began.Add(d)) })
	}
	wg.Wait()
	took := time.Since(began)
	total := 0
	for _, n := range responses {
		total += n
	}
	return float64(total) / took.Seconds(), errors.Join(errs...)
}

// floodOne sends requests over one connection until end.
func floodOne(ctx context.Context, addr string, requests [][]byte, end time.Time) (responses int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 64<<10)
	for ; time.Now().Before(end); responses++ {
		if _, err := conn.Write(requests[responses%len(requests)]); err != nil {
			return responses, err
		}
		if err := skipResponse(in); err != nil {
			return responses, err
		}
	}
	return responses, nil
}

// skipResponse reads and discards a response with a Content-Length.
func skipResponse(in *bufio.Reader) error {
	const ok, length = "HTTP/1.1 20", "Content-Length: "
	status, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte(ok)) {
		return fmt.Errorf("got status line %q, want status 200 to 209", bytes.TrimSpace(status))
	}
	size := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte(length)); found {
			if size, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if size < 0 {
		return errors.New("got a response without Content-Length, want one with it")
	}
	_, err = in.Discard(size)
	return err
}
