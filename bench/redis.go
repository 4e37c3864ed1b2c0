package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// redis is a Redis server for the peer's queue. It listens on a socket in a temporary
// directory and writes nothing to disk, to be as fast as possible.
type redis struct {
	socket  string
	process *exec.Cmd
	done    chan struct{}
	log     bytes.Buffer // read it after done is closed
}

// startRedis starts Redis in a directory below temp.
func startRedis(ctx context.Context, temp string) (*redis, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(temp, "redis-")
	if err != nil {
		return nil, err
	}
	r := &redis{socket: filepath.Join(dir, "socket"), done: make(chan struct{})}
	r.process = exec.CommandContext(ctx, program, //nolint:gosec // Redis
		"--port", "0", "--unixsocket", r.socket, "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir", dir)
	r.process.Stdout, r.process.Stderr = &r.log, &r.log
	if err := r.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.process.Wait() // the log contains the error
		close(r.done)
	}()
	if err := r.await(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// await waits until Redis accepts connections.
func (r *redis) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start Redis: no response: %w", err)
		case <-r.done:
			return fmt.Errorf("start Redis: the server %w\n%s", errEnded, r.log.String())
		case <-t.C:
		}
	}
}

// close stops Redis.
func (r *redis) close() {
	_ = r.process.Process.Signal(syscall.SIGTERM) // fails if the process has already ended
	<-r.done
}
