package providertest

import (
	"bytes"
	"io"
	"testing"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// Fuzz calls read with arbitrary input and checks the rules for every response. Quotes must
// have a valid item and no negative amounts. An error must be of KindProtocol, KindTooLarge or
// KindRateLimited.
func Fuzz(f *testing.F, read func(body io.Reader, sink provider.Sink) error) {
	f.Helper()
	f.Fuzz(func(t *testing.T, body []byte) {
		sink := &strict{t: t}
		err := read(bytes.NewReader(body), sink)
		switch provider.KindOf(err) {
		case provider.KindProtocol, provider.KindTooLarge, provider.KindRateLimited:
		default:
			if err != nil {
				t.Errorf("got error %v, want kind protocol, tooLarge or rateLimited", err)
			}
		}
	})
}

// strict is a sink that fails the test for an invalid quote.
type strict struct{ t *testing.T }

func (*strict) Restart() {}

func (s *strict) Quote(q *provider.Quote) error {
	switch {
	case catalog.CheckName(q.Name) != nil, catalog.CheckPhase(q.Phase) != nil:
		s.t.Errorf("got quote %+v, want a valid name and phase", *q)
	case q.Ask < 0 || q.Bid < 0 || q.Sale < 0 || q.Listings < provider.Unknown || q.Sales < provider.Unknown:
		s.t.Errorf("got quote %+v, want no negative number", *q)
	case q.Currency == "" || q.Market == "":
		s.t.Errorf("got quote %+v, want a currency and a market", *q)
	}
	return nil
}

func (s *strict) Reject(string, string, string) {}

// Discard is a sink that discards all quotes, for benchmarks.
type Discard struct{}

// Restart does nothing.
func (Discard) Restart() {}

// Quote does nothing.
func (Discard) Quote(*provider.Quote) error { return nil }

// Reject does nothing.
func (Discard) Reject(string, string, string) {}
