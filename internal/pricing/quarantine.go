package pricing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"assay/internal/money"
)

// Anomaly is the reason why a response was refused as a whole (step 5).
type Anomaly string

// The anomalies.
const (
	FewNames        Anomaly = "fewNames"        // less than half as many names as the last response
	OneValue        Anomaly = "oneValue"        // more than 20 % of the names have the same price
	Ratio           Anomaly = "ratio"           // all prices changed, as with cents for dollars or another currency
	Drift           Anomaly = "drift"           // all prices changed since a response of the last week
	Dispersion      Anomaly = "dispersion"      // too many names moved relative to their class, as with shuffled names
	OlderResponse   Anomaly = "olderResponse"   // the response equals an older one
	LevelChange     Anomaly = "level"           // the level against the other markets changed
	FirstLevel      Anomaly = "firstLevel"      // a first response has a very different level than the others
	FirstDispersion Anomaly = "firstDispersion" // a first response ranks names by price differently than the others
	Wears           Anomaly = "wears"           // a first response without other markets has implausible prices of wears
	Contested       Anomaly = "contested"       // a first response contradicts an equal number of markets
)

// Refusal is the refusal of a response, with the figures and the limits. Shares, factors
// and logarithms are in millionths.
type Refusal struct {
	Anomaly Anomaly
	Names   int         // number of compared names
	Before  int         // number of names in the last response, for FewNames
	Value   money.Micro // share, factor or median logarithm
	Low     money.Micro // lower limit of Value; 0: none
	High    money.Micro // upper limit of Value; 0: none
	At      time.Time   // time of the older response, for Drift and OlderResponse
	Rival   int64       // market that contradicts the response, for Contested
}

// String explains the refusal to an operator in one sentence.
func (r *Refusal) String() string { return r.Text(fmt.Sprintf("market %d", r.Rival)) }

// Text returns the sentence of String with the given name for the market Rival.
func (r *Refusal) Text(rival string) string {
	switch r.Anomaly {
	case FewNames:
		return fmt.Sprintf("the response has %s names, fewer than half of the %s names before", grouped(r.Names), grouped(r.Before))
	case OneValue:
		return fmt.Sprintf("%s of %s names have the same price; the limit is %s", percent(r.Value), grouped(r.Names), percent(r.High))
	case Ratio:
		return fmt.Sprintf("prices are %s times those of the last response (median of %s names); the limits are %s and %s", r.Value, grouped(r.Names), r.Low, r.High)
	case Drift:
		return fmt.Sprintf("prices are %s times those of the response at %s (median of %s names); the limits are %s and %s", r.Value, minute(r.At), grouped(r.Names), r.Low, r.High)
	case Dispersion:
		return fmt.Sprintf("%s of %s names moved by more than 2× relative to their class; the limit is %s", percent(r.Value), grouped(r.Names), percent(r.High))
	case OlderResponse:
		return fmt.Sprintf("%s of %s prices that changed since %s have their old value again", percent(r.Value), grouped(r.Names), minute(r.At))
	case LevelChange:
		return fmt.Sprintf("the level against the other markets is %s times the learned level (median of %s names); the limits are %s and %s", r.Value, grouped(r.Names), r.Low, r.High)
	case FirstLevel:
		return fmt.Sprintf("first response: prices are %s times those of the other markets (median of %s names); the limits are %s and %s", r.Value, grouped(r.Names), r.Low, r.High)
	case FirstDispersion:
		return fmt.Sprintf("first response: %s of %s names are more than 3× away from the other markets after levelling; the limit is %s", percent(r.Value), grouped(r.Names), percent(r.High))
	case Wears:
		return fmt.Sprintf("first response without another market: neighboring wears of one skin differ by %s (median logarithm of %s pairs); the limits are %s and %s", r.Value, grouped(r.Names), r.Low, r.High)
	case Contested:
		return fmt.Sprintf("first response: %s contradicts it, and neither has a majority of the markets: accept the correct one", rival)
	default:
		return string(r.Anomaly)
	}
}

// grouped formats a number with thousands separators, such as 28,800.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// percent formats a share in millionths as "12.3 %".
func percent(share money.Micro) string {
	tenths := (share + 500) / 1000
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// covers reports whether an operator's acceptance of r also applies to o. Both must have
// the same anomaly. Their numbers of names and their values must differ by at most 2x.
func (r *Refusal) covers(o *Refusal) bool {
	names := 2*o.Names >= r.Names && o.Names <= 2*r.Names
	value := r.Value == 0 || 2*o.Value >= r.Value && o.Value <= 2*r.Value
	return r.Anomaly == o.Anomaly && names && value
}

// keptDispersions is the number of stored dispersions.
const keptDispersions = 7

// ValidationState is the stored state of one market of one game between runs. The zero value
// stands for a market without responses.
type ValidationState struct {
	Dispersions      []money.Micro // the last seven values, oldest first, in millionths
	Level            Log           // learned level; it follows the current level slowly
	Levelled         bool          // Level is known
	ChangedAt        time.Time     // when the good response last changed
	MarketMovedUntil time.Time     // see SetMarket
	RefusedSince     time.Time     // start of consecutive refusals; zero: the last response was good
	Refused          Refusal       // last refusal
	AcceptedAt       time.Time     // when an operator accepted Refused; set by the caller
}

const stateVersion = 1

// acceptedFor is the time after which an operator's acceptance of a response expires.
const acceptedFor = 48 * time.Hour

// accepts reports whether an operator's acceptance applies to the refusal r.
func (s *ValidationState) accepts(r *Refusal, now time.Time) bool {
	age := now.Sub(s.AcceptedAt)
	return !s.AcceptedAt.IsZero() && age >= 0 && age < acceptedFor && s.Refused.covers(r)
}

var errState = errors.New("stored state of a market is damaged or has another version")

// MarshalBinary encodes the state in format 1. The maximum is 160 bytes.
func (s *ValidationState) MarshalBinary() ([]byte, error) {
	c := *s
	return encode(stateVersion, c.code), nil
}

// UnmarshalBinary decodes the output of MarshalBinary.
func (s *ValidationState) UnmarshalBinary(b []byte) error {
	var out ValidationState
	if !decode(b, stateVersion, out.code) {
		return errState
	}
	*s = out
	return nil
}

func (s *ValidationState) code(r *record) {
	n := byte(len(s.Dispersions))
	if r.octet(&n); n > keptDispersions {
		r.bad = true
		return
	}
	if !r.writing {
		s.Dispersions = slices.Grow(s.Dispersions, int(n))[:n]
	}
	for i := range s.Dispersions {
		number(r, &s.Dispersions[i], money.Scale)
	}
	r.flags(&s.Levelled)
	number(r, &s.Level, 1<<30)
	f := &s.Refused
	r.times(&s.ChangedAt, &s.MarketMovedUntil, &s.RefusedSince, &s.AcceptedAt, &f.At)
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

// anomalies returns all anomalies in the order of their stored numbers. Number 0 means no
// anomaly.
func anomalies() []Anomaly {
	return []Anomaly{
		"", FewNames, OneValue, Ratio, Drift, Dispersion, OlderResponse, LevelChange,
		FirstLevel, FirstDispersion, Wears, Contested,
	}
}
