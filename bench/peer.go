package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// peerCommand is the argument that starts this program as the peer for lookups.
const peerCommand = "peer"

// peerKey identifies an item in a request and in the map.
type peerKey struct {
	AppID          int    `json:"appId"`
	MarketHashName string `json:"marketHashName"`
	Phase          string `json:"phase"`
}

// servePeer runs a minimal net/http server in a separate process, for comparison. It serves lookups
// from a map of encoded JSON. It reads the items from in, one per line, up to an empty line. Then it
// writes its address to out and serves until in ends. It checks no credentials, names or limits.
func servePeer(ctx context.Context, in io.Reader, out io.Writer) error {
	prices := map[peerKey][]byte{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		var key peerKey
		if err := json.Unmarshal(line, &key); err != nil {
			return err
		}
		prices[key] = line
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: peerHandler(prices)} //nolint:gosec // only this program sends requests
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return errors.Join(err, s.Close())
	}
	_, _ = io.Copy(io.Discard, lines) // until the parent ends
	err = s.Close()
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// peerHandler decodes the requested keys and joins the stored responses.
func peerHandler(prices map[peerKey][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var wanted struct {
			Items []peerKey `json:"items"`
		}
		if err := json.Unmarshal(body, &wanted); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		response := []byte(`{"items":[`)
		for i, key := range wanted.Items {
			if i > 0 {
				response = append(response, ',')
			}
			response = append(response, prices[key]...)
		}
		response = append(response, `],"currency":"USD"}`...)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(response)))
		_, _ = w.Write(response) // the client may have disconnected
	})
}

// peer is a running peer process.
type peer struct {
	addr    string
	process *exec.Cmd
	stdin   io.Closer
}

// startPeer starts this program as a peer with the given items.
func startPeer(ctx context.Context, items []json.RawMessage) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &peer{process: exec.CommandContext(ctx, self, peerCommand)} //nolint:gosec // this program
	p.process.Stderr = os.Stderr
	stdin, err := p.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	text := bufio.NewWriter(stdin)
	for _, item := range items {
		_, _ = text.Write(append(item, '\n')) // Flush returns the error
	}
	_, _ = text.WriteString("\n")
	if err := text.Flush(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

func (p *peer) close() error {
	return errors.Join(p.stdin.Close(), p.process.Wait())
}
