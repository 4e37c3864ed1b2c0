package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc. Linux uses it on all architectures.
const clockTick = 10 * time.Millisecond

// processTimes are the fields of /proc/PID/stat that the bench uses.
type processTimes struct {
	parent        int
	own, children time.Duration // user and system time; children counts only ended processes
}

// readTimes reads the processor time of a process. Its id is a number or "self".
func readTimes(process string) (processTimes, error) {
	text, err := os.ReadFile(filepath.Join("/proc", process, "stat"))
	if err != nil {
		return processTimes{}, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name of the program
	const parent, utime, stime, cutime, cstime = 1, 11, 12, 13, 14
	fields := strings.Fields(rest)
	if len(fields) <= cstime {
		return processTimes{}, fmt.Errorf("unexpected /proc/%s/stat: %q", process, text)
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(fields[field]) // the kernel writes numbers
		return n
	}
	return processTimes{
		parent:   number(parent),
		own:      time.Duration(number(utime)+number(stime)) * clockTick,
		children: time.Duration(number(cutime)+number(cstime)) * clockTick,
	}, nil
}

// processorTime returns the time of all processes of the server so far.
func (c *cluster) processorTime(ctx context.Context) (time.Duration, error) {
	var backend int
	if err := c.admin.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return 0, err
	}
	times, err := readTimes(strconv.Itoa(backend))
	if err != nil {
		return 0, err
	}
	server := times.parent
	if times, err = readTimes(strconv.Itoa(server)); err != nil {
		return 0, err
	}
	sum := times.own + times.children
	processes, err := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		if times, err := readTimes(filepath.Base(p)); err == nil && times.parent == server { // others may have ended
			sum += times.own
		}
	}
	return sum, err
}
