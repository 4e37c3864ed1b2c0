package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"assay/internal/view"
)

// lineEvery is how often long work prints a line without a terminal,
// changes of its stage aside.
const lineEvery = 5 * time.Second

// progress shows how far a refresh is: as a bar on a terminal, else as a plain
// line now and then.
type progress struct {
	w       io.Writer
	now     func() time.Time
	bar     *progressbar.ProgressBar // nil: plain lines
	stage   string                   // last printed
	printed time.Time
}

// newProgress returns a progress that writes to w.
func newProgress(w io.Writer, terminal bool, now func() time.Time) *progress {
	p := &progress{w: w, now: now}
	if terminal {
		p.bar = newBar(w)
	}
	return p
}

// newBar returns a bar whose length is not known yet.
func newBar(w io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(50*time.Millisecond),
	)
}

// show prints the progress of a job.
func (p *progress) show(job view.Job) {
	stage := job.Stage
	if job.State == "queued" {
		stage = "queued"
	}
	done := job.TotalItems - job.PendingItems
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("refresh %s: %-6s", job.ID, stage))
		if job.TotalItems > 0 && job.TotalItems != p.bar.GetMax64() {
			p.bar.ChangeMax64(job.TotalItems)
		}
		_ = p.bar.Set64(done)
		return
	}
	if now := p.now(); stage != p.stage || now.Sub(p.printed) >= lineEvery {
		p.stage, p.printed = stage, now
		p.line(job, stage, done)
	}
}

func (p *progress) line(job view.Job, stage string, done int64) {
	_, _ = fmt.Fprintf(p.w, "refresh %s: %s, %s of %s items, %s\n",
		job.ID, stage, count(done), count(job.TotalItems), requests(job.Usage.RequestCount))
}

// end leaves the terminal on a fresh line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.w)
	}
}
