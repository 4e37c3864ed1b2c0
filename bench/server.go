package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assay/internal/app"
	"assay/internal/config"
)

// server is a process of the program under test with its directory. It can be stopped and
// restarted.
type server struct {
	binary string
	dir    string
	env    []string // additional settings
	addr   string
	token  string
	client *http.Client

	process *exec.Cmd
	done    chan struct{} // closed when the process has ended
	exit    error         // result of the process; read it after done is closed
	log     bytes.Buffer  // output of the last process; read it after done is closed
}

// newServer prepares a server that listens on a free port.
func newServer(ctx context.Context, binary, dir string, env []string) (*server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{binary: binary, dir: dir, env: env, addr: l.Addr().String(), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256},
	}}
	return s, l.Close()
}

// start starts the process. It returns the time until the first successful health check.
func (s *server) start(ctx context.Context) (time.Duration, error) {
	s.log.Reset()
	s.process = exec.CommandContext(ctx, s.binary, "serve") //nolint:gosec // the program to measure
	s.process.Env = append([]string{"DATA_DIR=" + s.dir, "LISTEN_ADDR=" + s.addr, "LOG_LEVEL=warn"}, s.env...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	began := time.Now()
	if err := s.process.Start(); err != nil {
		return 0, err
	}
	s.run(s.process.Wait)
	err := s.poll(ctx, time.Millisecond, time.Minute, func() (bool, error) {
		status, _, err := send(ctx, s.client, http.MethodGet, s.url("/api/health"), "", nil)
		return err == nil && status == http.StatusOK, nil
	})
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	return took, s.readToken()
}

// runInProcess runs the server in this process with o. It sets Config, Version and Logger of o. The returned
// function stops the server.
func (s *server) runInProcess(o app.Options) (end func() error, err error) {
	cfg, err := config.Load(config.Options{
		Environ: append([]string{"DATA_DIR=" + s.dir, "LISTEN_ADDR=" + s.addr}, s.env...), Providers: app.Providers(),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Config, o.Version, o.Logger = cfg, "bench", slog.New(slog.DiscardHandler)
	a, err := app.New(ctx, o)
	if err != nil {
		cancel()
		return nil, err
	}
	s.run(func() error { return a.Run(ctx) })
	<-a.Ready()
	end = func() error {
		cancel()
		<-s.done
		return s.exit
	}
	if err := s.readToken(); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// run calls wait in a goroutine. It stores the result in exit and then closes done.
func (s *server) run(wait func() error) {
	done := make(chan struct{})
	s.done = done
	go func() {
		s.exit = wait()
		close(done)
	}()
}

// readToken reads the admin token from the settings, or from the file that the first start
// created.
func (s *server) readToken() error {
	for _, setting := range s.env {
		if token, ok := strings.CutPrefix(setting, "ADMIN_API_TOKEN="); ok {
			s.token = token
			return nil
		}
	}
	token, err := os.ReadFile(filepath.Join(s.dir, "secrets", "ADMIN_API_TOKEN"))
	s.token = strings.TrimSpace(string(token))
	return err
}

// stop stops the process gracefully.
func (s *server) stop() error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-s.done
	s.process = nil
	s.client.CloseIdleConnections()
	return s.exit
}

// kill kills the process if it runs.
func (s *server) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill() // fails if the process has already ended
		<-s.done
		s.process = nil
	}
}

// poll calls ok periodically. It returns when ok returns true or fails, the process ends, or
// the time limit most has passed.
func (s *server) poll(ctx context.Context, every, most time.Duration, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return fmt.Errorf("the server %w\n%s", errors.Join(errEnded, s.exit), s.log.String())
		case <-t.C:
		}
	}
}

var errEnded = errors.New("ended unexpectedly")

func (s *server) url(path string) string { return "http://" + s.addr + path }

// call sends a request as administrator and decodes the response.
func (s *server) call(ctx context.Context, method, path string, body []byte, into any) error {
	status, response, err := send(ctx, s.client, method, s.url(path), s.token, body)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return fmt.Errorf("%s %s: status %d: %.300s", method, path, status, response)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(response, into)
}

// send sends a request and returns the complete response.
func send(ctx context.Context, client *http.Client, method, url, token string, body []byte) (status int, response []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	response, err = io.ReadAll(resp.Body)
	return resp.StatusCode, response, err
}

// job contains the fields of a job that the bench needs.
type job struct {
	ID           string     `json:"id"`
	State        string     `json:"state"`
	StartedAt    *time.Time `json:"startedAt"`
	FinishedAt   *time.Time `json:"finishedAt"`
	TotalItems   int        `json:"totalItems"`
	UpdatedItems int        `json:"updatedItems"`
	ChangedItems int        `json:"changedItems"`
	FailedItems  int        `json:"failedItems"`
	LastError    *string    `json:"lastError"`
	Usage        struct {
		RequestCount int `json:"requestCount"`
	} `json:"usage"`
}

// refresh runs a forced refresh to its end. It returns the job and the time from the request
// to the end of the job, by the local clock.
func (s *server) refresh(ctx context.Context) (job, time.Duration, error) {
	var started struct {
		Started bool `json:"started"`
		Job     job  `json:"job"`
	}
	began := time.Now()
	if err := s.call(ctx, http.MethodPost, "/api/market-prices/refresh?force=1", nil, &started); err != nil {
		return job{}, 0, err
	}
	if !started.Started {
		return job{}, 0, errors.New("another refresh is running")
	}
	var j job
	err := s.poll(ctx, 20*time.Millisecond, time.Hour, func() (bool, error) {
		err := s.call(ctx, http.MethodGet, "/api/market-prices/jobs/"+started.Job.ID, nil, &j)
		return j.FinishedAt != nil, err
	})
	took := time.Since(began)
	if err != nil {
		return job{}, 0, err
	}
	if j.State != "finished" || j.FailedItems > 0 || j.LastError != nil {
		return job{}, 0, fmt.Errorf("job %s is %s, %d items failed: %v", j.ID, j.State, j.FailedItems, deref(j.LastError))
	}
	return j, took, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// awaitPrices waits until the queue of missing prices is empty.
func (s *server) awaitPrices(ctx context.Context) error {
	var status struct {
		Missing struct {
			Running      bool `json:"running"`
			PendingItems int  `json:"pendingItems"`
		} `json:"missing"`
	}
	return s.poll(ctx, 100*time.Millisecond, time.Hour, func() (bool, error) {
		err := s.call(ctx, http.MethodGet, "/api/market-prices/status", nil, &status)
		return !status.Missing.Running && status.Missing.PendingItems == 0, err
	})
}

// peak returns the peak memory of the process in bytes.
func (s *server) peak() (int64, error) {
	var kib int64
	_, err := fmt.Sscan(field(s.proc("status"), "VmHWM"), &kib)
	return kib << 10, err
}

// written returns the number of bytes that the process has written to files.
func (s *server) written() (bytes int64, err error) {
	_, err = fmt.Sscan(field(s.proc("io"), "wchar"), &bytes)
	return bytes, err
}

// proc returns the path of a file in the process's /proc directory.
func (s *server) proc(file string) string {
	return "/proc/" + strconv.Itoa(s.process.Process.Pid) + "/" + file
}
