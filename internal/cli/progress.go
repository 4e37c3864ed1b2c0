package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"assay/internal/view"
)

// lineEvery is the interval of progress lines without a terminal. A new stage always prints a
// line.
const lineEvery = 5 * time.Second

// progress shows the progress of long work. It draws a bar on a terminal. Otherwise it prints
// a line every few seconds.
type progress struct {
	w       io.Writer
	now     func() time.Time
	bar     *progressbar.ProgressBar // nil: print lines
	stage   string                   // last printed stage
	printed time.Time
}

func (s *session) newProgress() *progress {
	return newProgress(s.Stderr, s.isTerminal(s.Stderr), s.Now)
}

func newProgress(w io.Writer, terminal bool, now func() time.Time) *progress {
	p := &progress{w: w, now: now}
	if terminal {
		p.bar = progressbar.NewOptions64(-1, // the length is not known yet
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionThrottle(50*time.Millisecond),
		)
	}
	return p
}

// show shows that done of total units are finished. On a terminal it updates the bar with the
// description what. Otherwise it prints line if the stage is new or lineEvery has passed.
func (p *progress) show(what string, done, total int64, stage, line string) {
	if p.bar != nil {
		p.bar.Describe(what)
		if total > 0 && total != p.bar.GetMax64() {
			p.bar.ChangeMax64(total)
		}
		_ = p.bar.Set64(done)
		return
	}
	if now := p.now(); stage != p.stage || now.Sub(p.printed) >= lineEvery {
		p.stage, p.printed = stage, now
		_, _ = fmt.Fprintln(p.w, line)
	}
}

// showJob shows the progress of a refresh.
func (p *progress) showJob(job *view.Job) {
	stage := job.Stage
	if job.State == "queued" {
		stage = "queued"
	}
	done := job.TotalItems - job.PendingItems
	p.show(fmt.Sprintf("refresh %s: %-6s", job.ID, stage), done, job.TotalItems, stage,
		fmt.Sprintf("refresh %s: %s, %s of %s items, %s", job.ID, stage, count(done), count(job.TotalItems), requests(job.Usage.RequestCount)))
}

// end moves the terminal to a new line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.w)
	}
}
