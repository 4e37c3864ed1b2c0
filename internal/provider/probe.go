package provider

import (
	"context"
	"slices"
	"time"

	"assay/internal/money"
)

// Probed is the result of a test request.
type Probed struct {
	Requests, Bytes int64
	Took            time.Duration
	Quotes          map[string]int64 // number of quotes, by market
	Rejected        map[string]int64 // number of invalid rows, by reason
	Samples         []ProbedQuote    // some quotes with an ask
}

// ProbedQuote is a quote in the response to a test request.
type ProbedQuote struct {
	Market, Name, Phase string
	Ask                 money.Micro
	Currency            money.Currency
}

// ProbeCall returns the cheapest call that shows whether a provider works. If the provider is
// requested by item name, the call requests the given name. ProbeCall returns false if there
// is nothing to request.
func ProbeCall(src Provider, app int32, name string) (call Call, ok bool) {
	if p, ok := src.(Prober); ok {
		call = p.Probe()
		if len(call.Names) > 0 {
			call.Names = []string{name}
		}
		return call, true
	}
	d := src.Describe()
	if d.Shape != Bulk {
		return Call{AppID: app, Names: []string{name}}, true
	}
	if len(d.Files) == 0 {
		return call, false
	}
	return Call{AppID: d.Files[0].AppID, File: d.Files[0].Key}, true
}

// Probe sends one call to a provider and counts the quotes in the response. It stores nothing.
// The requests count in the budget of the provider's clients.
func Probe(ctx context.Context, src Provider, call Call, now func() time.Time) (Probed, error) {
	meter := &Meter{}
	call.Meter = meter
	t := &tally{}
	t.Restart()
	begun := now()
	_, err := src.Fetch(ctx, call, t)
	t.Took, t.Requests, t.Bytes = now().Sub(begun), meter.Requests(), meter.Bytes()
	return t.Probed, err
}

// tally counts the quotes of a response. It implements Sink.
type tally struct {
	Probed
	seen Duplicates
}

// The limits bound the memory that a hostile response can use.
const (
	probedReasons = 50
	probedSamples = 3
)

func (t *tally) Restart() {
	*t = tally{Probed: Probed{Quotes: map[string]int64{}, Rejected: map[string]int64{}, Samples: []ProbedQuote{}}}
}

func (t *tally) Quote(q *Quote) error {
	switch t.seen.Add(q) {
	case First:
	case Conflicting:
		t.Quotes[q.Market]--
		t.Rejected[RejectConflict] += 2
		t.Samples = slices.DeleteFunc(t.Samples, func(s ProbedQuote) bool {
			return s.Market == q.Market && s.Name == q.Name && s.Phase == q.Phase
		})
		return nil
	case AfterConflict:
		t.Reject(q.Market, q.Name, RejectConflict)
		return nil
	default:
		t.Reject(q.Market, q.Name, RejectRepeat)
		return nil
	}
	t.Quotes[q.Market]++
	if q.Ask > 0 && len(t.Samples) < probedSamples {
		t.Samples = append(t.Samples, ProbedQuote{Market: q.Market, Name: q.Name, Phase: q.Phase, Ask: q.Ask, Currency: q.Currency})
	}
	return nil
}

func (t *tally) Reject(_, _, reason string) {
	if _, known := t.Rejected[reason]; known || len(t.Rejected) < probedReasons {
		t.Rejected[reason]++
	}
}
