package refresh

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

const (
	// patience is the longest that a unit is put off because its source said to
	// wait; beyond it the job goes on without the source.
	patience = 2 * time.Minute
	// maxAttempts bounds how often a unit is put off.
	maxAttempts = 10
	// maxAnswer bounds the packed quotes of one unit, in bytes.
	maxAnswer = 256 << 20
	// goodbye is how long giving work back may take when the process stops.
	goodbye = 2 * time.Second
)

// Fetch asks a source for one unit and stores the answer.
func (e *Engine) Fetch(ctx context.Context, source string) (bool, error) {
	var unit *Unit
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		unit, err = tx.ClaimUnit(source, e.owner)
		return err
	})
	if err != nil || unit == nil {
		return false, err
	}
	a := e.ask(ctx, unit)
	defer e.release(a)
	if ctx.Err() != nil {
		return false, e.giveBack(ctx, func(tx Tx) error { return tx.ReturnUnit(*unit) })
	}
	if unit.State == UnitPending {
		return true, e.store.InTx(ctx, func(tx Tx) error { return tx.ReturnUnit(*unit) })
	}
	blobs := a.packer.blobs()
	err = e.store.InTx(ctx, func(tx Tx) error {
		if _, err := tx.EndUnit(*unit, a.fetches(), blobs); err != nil {
			return err
		}
		return tx.NoteSource(source, unit.Error)
	})
	if err != nil {
		return false, fmt.Errorf("store answer of %s: %w", source, err)
	}
	e.wake(WorkSettle)
	return true, nil
}

// giveBack writes although ctx has ended.
func (e *Engine) giveBack(ctx context.Context, fn func(Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	return e.store.InTx(ctx, fn)
}

// ask sends what the unit asks for and notes in it how that ended: UnitDone,
// UnitFailed, UnitDeferred, or UnitPending when it is to be tried again later.
func (e *Engine) ask(ctx context.Context, unit *Unit) *answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.track(unit, cancel)
	defer e.untrack(unit)

	src := e.sources[unit.Source]
	a := e.newAnswer(src.Describe())
	meter := &provider.Meter{}
	err := a.fetch(ctx, src, unit, meter)
	unit.Requests += meter.Requests()
	unit.Bytes += meter.Bytes()
	unit.FetchedAt = e.now()
	if err == nil {
		unit.State = UnitDone
		return a
	}
	a.Restart()
	e.judgeFailure(unit, err)
	return a
}

// judgeFailure decides what becomes of a unit whose call failed.
func (e *Engine) judgeFailure(unit *Unit, err error) {
	unit.State = UnitFailed
	unit.ErrorKind, unit.Error = string(provider.KindProtocol), unit.Source+": "+err.Error()
	var pe *provider.Error
	if !errors.As(err, &pe) {
		return
	}
	unit.ErrorKind, unit.Error = string(pe.Kind), pe.Error()
	if !pe.Deferred() {
		return
	}
	if pe.RetryAfter > 0 && pe.RetryAfter <= patience && unit.Attempts < maxAttempts {
		unit.State = UnitPending
		unit.NotBefore = e.now().Add(pe.RetryAfter)
		return
	}
	unit.State = UnitDeferred
}

func (e *Engine) track(u *Unit, cancel context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[u.ID], e.jobOf[u.ID] = cancel, u.JobID
}

func (e *Engine) untrack(u *Unit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, u.ID)
	delete(e.jobOf, u.ID)
}

// interrupt ends the calls that this process makes for a job.
func (e *Engine) interrupt(jobID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for unit, job := range e.jobOf {
		if job == jobID {
			e.running[unit]()
		}
	}
}

// answer takes what a source decodes: it checks every quote, keeps one for each
// item and market, and packs them by bucket.
type answer struct {
	packer  *packer
	markets map[string]int64
	counts  map[int64]*MarketFetch
	silent  []string
	seen    map[uint64]struct{}
	seed    maphash.Seed
	size    int
	source  string
}

// Why a row of an answer counts for nothing.
const (
	rejectMarket    = "unknown market"
	rejectDuplicate = "duplicate name"
	rejectName      = "invalid name"
	rejectAmount    = "invalid amount"
	rejectCurrency  = "invalid currency"
	rejectCount     = "invalid count"
)

func (e *Engine) newAnswer(d provider.Description) *answer {
	p, ok := e.packers.Get().(*packer)
	if !ok {
		p = newPacker()
	}
	a := &answer{
		packer: p, markets: map[string]int64{}, counts: map[int64]*MarketFetch{},
		seen: map[uint64]struct{}{}, seed: maphash.MakeSeed(), source: d.Name,
	}
	for _, m := range d.Markets {
		a.markets[m.Key] = e.markets[MarketName{Source: d.Name, Key: m.Key, Title: m.Title}]
	}
	a.Restart()
	return a
}

func (e *Engine) release(a *answer) {
	a.packer.reset()
	e.packers.Put(a.packer)
}

// fetch makes the calls of a unit, one after another where the source takes
// fewer names than the unit has.
func (a *answer) fetch(ctx context.Context, src provider.Source, unit *Unit, meter *provider.Meter) error {
	d := src.Describe()
	if d.Shape == provider.Bulk {
		ans, err := src.Fetch(ctx, provider.Call{AppID: unit.AppID, File: unit.File, Meter: meter}, a)
		a.silent, unit.StatedAt = ans.Silent, ans.ProviderTime
		a.expect(d, unit.File)
		return err
	}
	whole := &joined{answer: a}
	size := max(d.BatchSize, 1)
	for from := 0; from < len(unit.Names); from += size {
		names := unit.Names[from:min(from+size, len(unit.Names))]
		whole.next()
		call := provider.Call{AppID: unit.AppID, Names: names, Meter: meter}
		ans, err := src.Fetch(ctx, call, whole)
		if err != nil {
			return err
		}
		unit.StatedAt = ans.ProviderTime
	}
	whole.flush()
	a.expect(d, "")
	return nil
}

// expect counts the markets that the answer covers and had no quote of.
func (a *answer) expect(d provider.Description, file string) {
	keys := make([]string, 0, len(d.Markets))
	for _, m := range d.Markets {
		keys = append(keys, m.Key)
	}
	for _, f := range d.Files {
		if f.Key == file {
			keys = f.Markets
		}
	}
	for _, key := range keys {
		a.count(a.markets[key])
	}
}

func (a *answer) count(market int64) *MarketFetch {
	c := a.counts[market]
	if c == nil {
		c = &MarketFetch{MarketID: market, Outcome: OutcomeOK}
		a.counts[market] = c
	}
	return c
}

// fetches returns what the answer brought of each market.
func (a *answer) fetches() []MarketFetch {
	out := make([]MarketFetch, 0, len(a.counts))
	for _, c := range a.counts {
		out = append(out, *c)
	}
	for i := range out {
		for _, key := range a.silent {
			if a.markets[key] == out[i].MarketID {
				out[i].Outcome = OutcomeSilent
			}
		}
	}
	return out
}

// Restart implements provider.Sink.
func (a *answer) Restart() {
	a.packer.reset()
	clear(a.counts)
	clear(a.seen)
	a.silent, a.size = nil, 0
}

// Quote implements provider.Sink.
func (a *answer) Quote(q *provider.Quote) error {
	market, ok := a.markets[q.Market]
	if !ok {
		return &provider.Error{Source: a.source, Kind: provider.KindProtocol, Detail: rejectMarket}
	}
	c := a.count(market)
	if reason := check(q); reason != "" {
		c.Rejected++
		return nil
	}
	// The first row of a name counts: a later one must not win silently.
	key := a.fingerprint(market, q)
	if _, twice := a.seen[key]; twice {
		c.Rejected++
		return nil
	}
	a.seen[key] = struct{}{}
	if a.size += len(q.Name) + 48; a.size > maxAnswer {
		return &provider.Error{Source: a.source, Kind: provider.KindTooLarge, Detail: "more quotes than an answer may hold"}
	}
	c.Quotes++
	a.packer.add(market, q)
	return nil
}

// Reject implements provider.Sink.
func (a *answer) Reject(market, _, _ string) {
	if id, ok := a.markets[market]; ok {
		a.count(id).Rejected++
	}
}

// fingerprint stands for market, name and phase. Two different ones of 40,000
// collide once in some ten billion files, and then a quote is missed, no more.
func (a *answer) fingerprint(market int64, q *provider.Quote) uint64 {
	var h maphash.Hash
	h.SetSeed(a.seed)
	maphash.WriteComparable(&h, market)
	_, _ = h.WriteString(q.Phase)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(q.Name)
	return h.Sum64()
}

// check returns why a quote counts for nothing, or "".
func check(q *provider.Quote) string {
	switch {
	case catalog.CheckName(q.Name) != nil || catalog.CheckPhase(q.Phase) != nil:
		return rejectName
	case q.Ask < 0 || q.Bid < 0 || q.Sale < 0:
		return rejectAmount
	case q.Listings < provider.Unknown || q.Sales < provider.Unknown || q.SalesWindow < 0:
		return rejectCount
	}
	if _, err := money.ParseCurrency(string(q.Currency)); err != nil {
		return rejectCurrency
	}
	return ""
}

// joined lets several calls fill one answer: a retried call forgets its own
// quotes, not those of the calls before it.
type joined struct {
	*answer
	quotes []provider.Quote
	reject []string
}

// next keeps what the last call brought and begins another one.
func (j *joined) next() { j.flush() }

func (j *joined) flush() {
	for i := range j.quotes {
		_ = j.answer.Quote(&j.quotes[i]) // checked when it came
	}
	for _, market := range j.reject {
		j.answer.Reject(market, "", "")
	}
	j.quotes, j.reject = j.quotes[:0], j.reject[:0]
}

// Restart implements provider.Sink for the call under way.
func (j *joined) Restart() { j.quotes, j.reject = j.quotes[:0], j.reject[:0] }

// Quote implements provider.Sink.
func (j *joined) Quote(q *provider.Quote) error {
	if _, ok := j.markets[q.Market]; !ok {
		return &provider.Error{Source: j.source, Kind: provider.KindProtocol, Detail: rejectMarket}
	}
	if len(j.quotes) >= maxCallQuotes {
		return &provider.Error{Source: j.source, Kind: provider.KindTooLarge, Detail: "more quotes than a call may bring"}
	}
	j.quotes = append(j.quotes, *q)
	return nil
}

// Reject implements provider.Sink.
func (j *joined) Reject(market, _, _ string) {
	if len(j.reject) < maxCallQuotes {
		j.reject = append(j.reject, market)
	}
}

// maxCallQuotes bounds what a call that names its items may bring: a thousand
// names on a hundred markets.
const maxCallQuotes = 100_000
