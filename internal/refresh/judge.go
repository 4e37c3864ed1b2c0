package refresh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// suspect is a market's part of a file's answer, to be judged.
type suspect struct {
	Judgement
	base   MarketFile      // its newest good answer, if any
	judged bool            // or else its verdict stands already
	check  pricing.Checkup // against that
	shared int
	open   bool // more shared names are wanted
	prices map[string]money.Micro
	before map[string]money.Micro
}

// first reports whether there is nothing of its own to hold it against.
func (s *suspect) first() bool { return s.judged && s.base.UnitID == 0 }

// judge holds every file's answer against the market's own last one, or a first
// one against the other markets (pricing.md, step 7), and lets the job settle
// with the good ones. One who does not believe a whole answer must see all of
// it, so this comes between fetching and settling. Where several processes judge
// the same job, the verdicts of the first to write them count.
func (e *Engine) judge(ctx context.Context, job *Job) error {
	suspects, units, err := e.suspects(ctx, job)
	if err != nil {
		return err
	}
	maker, err := e.maker(ctx, job.RateSet)
	if err != nil {
		return err
	}
	panel := newPanel(suspects, units, maker)
	if err := e.compare(ctx, suspects, panel); err != nil {
		return fmt.Errorf("judge answers of job %d: %w", job.ID, err)
	}
	verdicts := make([]Judgement, 0, len(suspects))
	for i, d := range e.diagnose(suspects, panel) {
		s := suspects[i]
		if d.Sick() {
			m := e.known[s.Fetch.MarketID]
			s.Refused = pricing.Refused{Names: int(s.Fetch.Quotes), Ratio: d.Ratio}
			s.Quarantine = fmt.Sprintf("%s: %s: quarantined: %s", m.source, m.Key, d)
			s.Fetch.Outcome = OutcomeQuarantined
		}
		verdicts = append(verdicts, s.Judgement)
	}
	listed, err := e.newlyListed(ctx, job, verdicts)
	if err != nil {
		return fmt.Errorf("missing prices listed for job %d: %w", job.ID, err)
	}
	judged, due := false, false
	err = e.store.InTx(ctx, func(tx Tx) (err error) {
		if judged, err = tx.Judge(job.ID, verdicts); err != nil || !judged {
			return err
		}
		due, err = tx.DueListed(listed)
		return err
	})
	if !judged {
		return err // another process was first
	}
	if due {
		e.wake(WorkMissing)
	}
	for _, v := range verdicts {
		if v.Quarantine != "" {
			e.log.Warn("answer quarantined", "job", job.ID, "file", v.Unit.File, "reason", v.Quarantine)
		}
	}
	return err
}

// suspects lists what a job's files brought, and all its answered units.
func (e *Engine) suspects(ctx context.Context, job *Job) ([]*suspect, []Unit, error) {
	all, err := e.store.JobUnits(ctx, job.ID)
	if err != nil {
		return nil, nil, err
	}
	outcomes, err := e.store.Outcomes(ctx, job.ID)
	if err != nil {
		return nil, nil, err
	}
	files, err := e.store.MarketFiles(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []*suspect
	var units []Unit
	for _, u := range all {
		if u.State != UnitDone {
			continue
		}
		units = append(units, u)
		for _, id := range e.marketsOf(u) {
			s := &suspect{Judgement: Judgement{Unit: u, Fetch: MarketFetch{MarketID: id, Outcome: OutcomeOK}}}
			if f, ok := outcomes[UnitMarket{u.ID, id}]; ok {
				s.Fetch = f
			}
			for _, f := range files {
				if f.MarketID == id && f.AppID == u.AppID && f.File == u.File {
					s.base = f
				}
			}
			e.prepare(s)
			out = append(out, s)
		}
	}
	return out, units, nil
}

// prepare decides what a market's part of an answer is to be compared with. One
// that an earlier unit brought is held against the newest good one like any
// other, since its own job may not have been judged yet; but it never becomes
// the newest itself.
func (e *Engine) prepare(s *suspect) {
	s.Reused = s.Unit.BlobUnit != s.Unit.ID
	switch {
	case s.base.UnitID == s.Unit.BlobUnit && s.base.UnitID != 0:
		s.Reused = true
	case s.Fetch.Outcome != OutcomeOK:
	default:
		s.judged, s.open = true, true
	}
}

// acceptedFor is how long an operator's word for a refused answer holds: for the
// next run, also where that is a day away.
const acceptedFor = 48 * time.Hour

// vouchedFor reports whether an operator accepted what this answer repeats.
func (s *suspect) vouchedFor(d pricing.Diagnosis, now time.Time) bool {
	age := now.Sub(s.base.AcceptedAt)
	return !s.Reused && !s.base.AcceptedAt.IsZero() && age >= 0 && age < acceptedFor &&
		s.base.Refused.Covers(int(s.Fetch.Quotes), d)
}

// diagnose judges what was compared: answers against their own last ones, and
// then first ones against all others that are healthy.
func (e *Engine) diagnose(suspects []*suspect, p *panel) []pricing.Diagnosis {
	out := make([]pricing.Diagnosis, len(suspects))
	mute := map[pricing.Voter]bool{}
	var first []pricing.Voter
	now := e.now()
	for i, s := range suspects {
		switch {
		case s.first():
			first = append(first, pricing.Voter(i))
		case !s.judged:
			mute[pricing.Voter(i)] = s.Fetch.Outcome != OutcomeOK
		default:
			d := s.check.AgainstOwn(int(s.base.Quotes), int(s.Fetch.Quotes))
			if d.Sick() && !s.vouchedFor(d, now) {
				out[i], mute[pricing.Voter(i)] = d, true
			}
		}
	}
	vouched := func(v pricing.Voter, d pricing.Diagnosis) bool { return suspects[v].vouchedFor(d, now) }
	for v, f := range p.Judge(first, mute, vouched) {
		out[v] = f.Diagnosis
		out[v].Rivals = e.named(f.Rivals, p)
	}
	return out
}

// named names the markets of voters, in one line of bounded length.
func (e *Engine) named(voters []pricing.Voter, p *panel) string {
	var names []string
	for _, v := range voters {
		names = append(names, e.known[p.markets[v]].Key)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 3
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, " and ")
}

// marketsOf returns the markets of a unit's file.
func (e *Engine) marketsOf(u Unit) []int64 {
	src, ok := e.sources[u.Source]
	if !ok || u.File == "" {
		return nil
	}
	d := src.Describe()
	keys := d.MarketsOf(u.File)
	var out []int64
	for id, m := range e.known {
		if m.source == u.Source && slices.Contains(keys, m.Key) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
