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

// loadConnections is how many connections ask at once, each as soon as it has its
// answer.
const loadConnections = 32

// request writes a request as it goes over the wire.
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

// flood sends requests in turn over all connections for so long and returns how
// many answers came in a second. It does as little as it can: on two cores what
// it takes is missing where the answers are made.
func flood(ctx context.Context, addr string, requests [][]byte, d time.Duration) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	answers := make([]int, loadConnections)
	errs := make([]error, loadConnections)
	var wg sync.WaitGroup
	began := time.Now()
	for n := range loadConnections {
		wg.Go(func() { answers[n], errs[n] = floodOne(ctx, addr, requests[n%len(requests):], began.Add(d)) })
	}
	wg.Wait()
	took := time.Since(began)
	total := 0
	for _, n := range answers {
		total += n
	}
	return float64(total) / took.Seconds(), errors.Join(errs...)
}

// floodOne sends requests over one connection until the end.
func floodOne(ctx context.Context, addr string, requests [][]byte, end time.Time) (answers int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 64<<10)
	for ; time.Now().Before(end); answers++ {
		if _, err := conn.Write(requests[answers%len(requests)]); err != nil {
			return answers, err
		}
		if err := skipAnswer(in); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// skipAnswer reads an answer with a length and forgets it.
func skipAnswer(in *bufio.Reader) error {
	const ok, length = "HTTP/1.1 20", "Content-Length: "
	status, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte(ok)) {
		return fmt.Errorf("answered %q", bytes.TrimSpace(status))
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
		return errors.New("an answer without a length")
	}
	_, err = in.Discard(size)
	return err
}
