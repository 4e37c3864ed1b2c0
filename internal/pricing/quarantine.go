package pricing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"assay/internal/money"
)

// Anomaly names why a response was refused as a whole (step 5).
type Anomaly string

// The anomalies.
const (
	FewNames        Anomaly = "fewNames"        // less than half of the previous names
	OneValue        Anomaly = "oneValue"        // one price on more than 20 % of the names
	Ratio           Anomaly = "ratio"           // cents for dollars, another currency
	Drift           Anomaly = "drift"           // the same, against a response of the last week
	Dispersion      Anomaly = "dispersion"      // too many names moved by themselves: shuffled names, swapped columns
	OlderResponse   Anomaly = "olderResponse"   // it is an older response again
	LevelChange     Anomaly = "level"           // its level against the others moved
	FirstLevel      Anomaly = "firstLevel"      // a first response far from the others
	FirstDispersion Anomaly = "firstDispersion" // a first response that orders names otherwise than the others
	Wears           Anomaly = "wears"           // a first response without other markets, whose wears contradict each other
	Contradicted    Anomaly = "contested"       // first responses contradict as many others
)

// Refusal is why a response was refused, with the figures and the limit.
type Refusal struct {
	Anomaly Anomaly
	Names   int         // names compared
	Before  int         // names of the last response, where they were counted
	Value   money.Micro // in millionths: a share, a factor or a median logarithm
	Low     money.Micro // the limits of Value, in millionths; 0: none
	High    money.Micro
	At      time.Time // the older response that Value refers to
	Rival   int64     // the market that contradicts a contested response
}

// String explains the refusal to an operator in one sentence.
func (r *Refusal) String() string { return r.Text(fmt.Sprintf("market %d", r.Rival)) }

// Text is String with the name of the market that Rival stands for.
func (r *Refusal) Text(rival string) string {
	switch r.Anomaly {
	case FewNames:
		return fmt.Sprintf("%d names, fewer than half of the %d before", r.Names, r.Before)
	case OneValue:
		return fmt.Sprintf("%s of %d names have the same price, more than the limit of %s", percent(r.Value), r.Names, percent(r.High))
	case Ratio:
		return fmt.Sprintf("prices are %s times those of the last response at the median of %d names, outside %s to %s", r.Value, r.Names, r.Low, r.High)
	case Drift:
		return fmt.Sprintf("prices are %s times those of %s at the median of %d names, outside %s to %s", r.Value, minute(r.At), r.Names, r.Low, r.High)
	case Dispersion:
		return fmt.Sprintf("%s of %d names moved by more than 2x apart from their class, more than the limit of %s", percent(r.Value), r.Names, percent(r.High))
	case OlderResponse:
		return fmt.Sprintf("%s of %d prices that changed since %s have their old value again", percent(r.Value), r.Names, minute(r.At))
	case LevelChange:
		return fmt.Sprintf("its level against the other markets moved to %s times what was learned, at the median of %d names, outside %s to %s", r.Value, r.Names, r.Low, r.High)
	case FirstLevel:
		return fmt.Sprintf("first response: prices are %s times those of the other markets at the median of %d names, outside %s to %s", r.Value, r.Names, r.Low, r.High)
	case FirstDispersion:
		return fmt.Sprintf("first response: %s of %d names are more than 3x away from the other markets after levelling, more than the limit of %s", percent(r.Value), r.Names, percent(r.High))
	case Wears:
		return fmt.Sprintf("first response without another market: neighboring wears of one skin differ by %s (median logarithm of %d pairs), outside %s to %s", r.Value, r.Names, r.Low, r.High)
	case Contradicted:
		return fmt.Sprintf("first response: %s contradicts it, and no majority of the markets shows which is right: accept the right one", rival)
	default:
		return string(r.Anomaly)
	}
}

// percent writes a share of millionths as "12.3 %".
func percent(share money.Micro) string {
	tenths := (share + 500) / 1000
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// covers reports whether an operator's acceptance of one refused response covers
// another: the same anomaly, about as many names, and a value within 2x.
func (r *Refusal) covers(o *Refusal) bool {
	names := 2*o.Names >= r.Names && o.Names <= 2*r.Names
	value := r.Value == 0 || 2*o.Value >= r.Value && o.Value <= 2*r.Value
	return r.Anomaly == o.Anomaly && names && value
}

// spreads is how many values of the dispersion J are remembered.
const spreads = 7

// MarketState is what is remembered of one market of one game between runs. The
// zero value is a market without any response yet.
type MarketState struct {
	J            []money.Micro // the last seven, oldest first, in millionths
	Level        Log           // its level when learned, following slowly
	Levelled     bool          // Level is known
	ChangedAt    time.Time     // when its good response last changed
	WideUntil    time.Time     // see SetMarket
	RefusedSince time.Time     // first of the refusals that go on; zero: the last response was good
	Refused      Refusal       // the last of them
	AcceptedAt   time.Time     // when an operator accepted Refused; the caller sets it
}

const stateVersion = 1

// acceptedFor is how long an operator's acceptance of a refused response holds.
const acceptedFor = 48 * time.Hour

// accepts reports whether an operator accepted what this response repeats.
func (s *MarketState) accepts(r *Refusal, now time.Time) bool {
	age := now.Sub(s.AcceptedAt)
	return !s.AcceptedAt.IsZero() && age >= 0 && age < acceptedFor && s.Refused.covers(r)
}

var errState = errors.New("stored state of a market is damaged or of another version")

// MarshalBinary encodes the state, format 1: at most 160 bytes.
func (s *MarketState) MarshalBinary() ([]byte, error) {
	c := *s
	return encode(stateVersion, c.code), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (s *MarketState) UnmarshalBinary(b []byte) error {
	var out MarketState
	if !decode(b, stateVersion, out.code) {
		return errState
	}
	*s = out
	return nil
}

func (s *MarketState) code(r *record) {
	n := byte(len(s.J))
	if r.octet(&n); n > spreads {
		r.bad = true
		return
	}
	if !r.writing {
		s.J = slices.Grow(s.J, int(n))[:n]
	}
	for i := range s.J {
		number(r, &s.J[i], money.Scale)
	}
	r.flags(&s.Levelled)
	number(r, &s.Level, 1<<30)
	f := &s.Refused
	r.times(&s.ChangedAt, &s.WideUntil, &s.RefusedSince, &s.AcceptedAt, &f.At)
	kind := byte(slices.Index(anomalies(), f.Anomaly))
	if r.octet(&kind); int(kind) >= len(anomalies()) {
		r.bad = true
		return
	}
	f.Anomaly = anomalies()[kind]
	number(r, &f.Names, 1<<40)
	number(r, &f.Before, 1<<40)
	for _, v := range []*money.Micro{&f.Value, &f.Low, &f.High} {
		number(r, v, 1<<62)
	}
	number(r, &f.Rival, 1<<63-1)
}

// anomalies lists all, in the order of their stored numbers; the first is none.
func anomalies() []Anomaly {
	return []Anomaly{
		"", FewNames, OneValue, Ratio, Drift, Dispersion, OlderResponse, LevelChange,
		FirstLevel, FirstDispersion, Wears, Contradicted,
	}
}
