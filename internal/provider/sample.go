package provider

import (
	"net/http"
	"time"
)

// SamplePeriod is the period that a Sample counts.
const SamplePeriod = 30 * time.Minute

// maxSamples limits the samples of a client while they cannot be stored. A half hour has at
// most 88 samples: 8 results with 11 durations.
const maxSamples = 1000

// SentResult is the result of a request, for statistics.
type SentResult string

// The results of requests.
const (
	ResultOK          SentResult = "ok"
	ResultNotModified SentResult = "notModified" // status 304
	ResultLimited     SentResult = "limited"     // status 429, or a quota is used up
	ResultRefused     SentResult = "refused"     // another status below 500
	ResultFailed      SentResult = "failed"      // status 5xx
	ResultNoResponse  SentResult = "noResponse"  // no connection, or no complete response in time
	ResultInvalid     SentResult = "invalid"     // the response cannot be used
	ResultCancelled   SentResult = "cancelled"   // this program ended the request
)

// Results lists all results, the best first.
func Results() []SentResult {
	return []SentResult{ResultOK, ResultNotModified, ResultLimited, ResultRefused, ResultFailed, ResultNoResponse, ResultInvalid, ResultCancelled}
}

// Result returns the result of the request.
func (s *Sent) Result() SentResult {
	switch s.Kind {
	case "":
		return ResultOK
	case KindRateLimited, KindBudget:
		return ResultLimited
	case KindAuth, KindStatus:
		if s.Status == http.StatusNotModified {
			return ResultNotModified
		}
		return ResultRefused
	case KindProtocol, KindTooLarge, KindQuarantine:
		return ResultInvalid
	case KindCancelled:
		return ResultCancelled
	case KindServer:
		return ResultFailed
	default:
		return ResultNoResponse
	}
}

// SampleKey identifies a Sample of a client.
type SampleKey struct {
	At     time.Time // start of the period
	Result SentResult
	UpTo   time.Duration // the smallest of LatencyBounds that no request exceeds; 0: above all bounds
}

// Sample counts the requests of a period with the same result and about the same duration.
type Sample struct {
	SampleKey
	Requests int64
	Duration time.Duration // sum
	Bytes    int64         // sum
}

// samples holds the requests of a client that are not stored yet.
type samples map[SampleKey]*Sample

// add merges a sample. If there are too many, it drops the sample.
func (s samples) add(n Sample) {
	sum := s[n.SampleKey]
	if sum == nil {
		if len(s) >= maxSamples {
			return
		}
		sum = &Sample{SampleKey: n.SampleKey}
		s[n.SampleKey] = sum
	}
	sum.Requests += n.Requests
	sum.Duration += n.Duration
	sum.Bytes += n.Bytes
}

// sample returns a request as a sample.
func (s *Sent) sample() Sample {
	key := SampleKey{At: s.Time.UTC().Truncate(SamplePeriod), Result: s.Result()}
	for _, bound := range LatencyBounds() {
		if s.Duration <= bound {
			key.UpTo = bound
			break
		}
	}
	return Sample{SampleKey: key, Requests: 1, Duration: s.Duration, Bytes: s.Bytes}
}

// TakeSamples returns the samples since the last call and removes them.
func (c *Client) TakeSamples() []Sample {
	r := &c.record
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Sample, 0, len(r.samples))
	for _, s := range r.samples {
		out = append(out, *s)
	}
	clear(r.samples)
	return out
}

// ReturnSamples adds back samples that could not be stored. The next TakeSamples returns them.
func (c *Client) ReturnSamples(returned []Sample) {
	r := &c.record
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range returned {
		r.samples.add(s)
	}
}
