package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// result is a row of the table. Fields that do not apply are empty.
type result struct {
	id, what, ours, floor, ratio, target string
	peak                                 int64 // in bytes; 0: does not apply
	good                                 bool
	skipped                              bool
}

type results []result

// print writes the table and a description of the machine.
func (r results) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "id\twhat\tours\tfloor or peer\tratio\ttarget\tpeak memory\tverdict")
	for _, l := range r {
		peak := ""
		if l.peak > 0 {
			peak = mebibytes(l.peak)
		}
		_, _ = fmt.Fprintln(t, strings.Join([]string{l.id, l.what, l.ours, l.floor, l.ratio, l.target, peak, l.verdict()}, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, machine())
	return err
}

func (l result) verdict() string {
	switch {
	case l.skipped:
		return "skipped"
	case l.good:
		return "ok"
	default:
		return "MISSED"
	}
}

// printJSON writes the results as one JSON object. Amounts are formatted as in the table.
func (r results) printJSON(w io.Writer) error {
	type line struct {
		ID      string `json:"id"`
		What    string `json:"what"`
		Ours    string `json:"ours,omitempty"`
		Floor   string `json:"floor,omitempty"`
		Ratio   string `json:"ratio,omitempty"`
		Target  string `json:"target,omitempty"`
		Peak    int64  `json:"peakBytes,omitempty"`
		Verdict string `json:"verdict"`
	}
	lines := make([]line, len(r))
	for i, l := range r {
		lines[i] = line{l.id, l.what, l.ours, l.floor, l.ratio, l.target, l.peak, l.verdict()}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"machine": machine(), "results": lines})
}

// machine describes the machine.
func machine() string {
	model, memory, load := field("/proc/cpuinfo", "model name"), field("/proc/meminfo", "MemTotal"), "?"
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	return fmt.Sprintf("%s; %s, %d cores, memory %s; %s %s/%s; load at the end %s",
		time.Now().UTC().Format("2006-01-02"), model, runtime.NumCPU(), memory, runtime.Version(), runtime.GOOS, runtime.GOARCH, load)
}

// field returns the value of the first line "key : value" in a file.
func field(file, key string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "?"
}

// median returns the median. For an even number of values it returns the lower middle value,
// and 0 for no values.
func median[T cmp.Ordered](values []T) T { return quantile(values, 50) }

// quantile returns the value at the given percentage of the sorted values. It rounds the position
// down, and returns 0 for no values.
func quantile[T cmp.Ordered](values []T, percent int) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)*percent/100]
}

func quotient(a, b time.Duration) float64 { return float64(a) / float64(b) }

func times(ratio float64) string { return fmt.Sprintf("%.2f", ratio) }

// short rounds a duration for display.
func short(d time.Duration) string {
	if d < 100*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

// count formats a number with thousands separators.
func count(n int) string { return humanize.Comma(int64(n)) }

// report collects the results of a run and prints its progress.
type report struct {
	results results
	log     io.Writer // progress messages
}

// skip reports a measurement that cannot be taken.
func (r *report) skip(id, what, why string) {
	r.note("%s: %s skipped: %s (scripts/setup bench installs it)", id, what, why)
	r.results = append(r.results, result{id: id, what: what + ": skipped, " + why, skipped: true})
}

// note prints a progress message.
func (r *report) note(format string, args ...any) {
	_, _ = fmt.Fprintf(r.log, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
