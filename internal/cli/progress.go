package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"assay/internal/view"
)

// lineEvery is how often long work prints a line where there is no terminal. A change of
// its stage prints one at once.
const lineEvery = 5 * time.Second

// progress shows how far long work is: as a bar on a terminal, else as a plain line now
// and then.
type progress struct {
	w       io.Writer
	now     func() time.Time
	bar     *progressbar.ProgressBar // nil: plain lines
	stage   string                   // last printed
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

// show shows that done of total is done. On a terminal it describes the bar with what.
// Otherwise it prints line, unless a line of the same stage was printed recently.
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

// end leaves the terminal on a fresh line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_, _ = fmt.Fprintln(p.w)
	}
}
