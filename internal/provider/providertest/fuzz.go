package providertest

import (
	"bytes"
	"io"
	"testing"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// Fuzz has read decode whatever comes, and holds what holds for every response: a
// quote is of an item, no amount is negative, and a failure says that the response is
// wrong, or what it says: to be slower.
func Fuzz(f *testing.F, read func(body io.Reader, sink provider.Sink) error) {
	f.Helper()
	f.Fuzz(func(t *testing.T, body []byte) {
		sink := &strict{t: t}
		err := read(bytes.NewReader(body), sink)
		switch provider.KindOf(err) {
		case provider.KindProtocol, provider.KindTooLarge, provider.KindRateLimited:
		default:
			if err != nil {
				t.Errorf("error %v", err)
			}
		}
	})
}

// strict is a sink that fails the test for a quote that must not be.
type strict struct{ t *testing.T }

func (*strict) Restart() {}

func (s *strict) Quote(q *provider.Quote) error {
	switch {
	case catalog.CheckName(q.Name) != nil, catalog.CheckPhase(q.Phase) != nil:
		s.t.Errorf("quote of what is no item: %+v", *q)
	case q.Ask < 0 || q.Bid < 0 || q.Sale < 0 || q.Listings < provider.Unknown || q.Sales < provider.Unknown:
		s.t.Errorf("negative: %+v", *q)
	case q.Currency == "" || q.Market == "":
		s.t.Errorf("incomplete: %+v", *q)
	}
	return nil
}

func (s *strict) Reject(string, string, string) {}

// Discard is a sink that keeps nothing, to measure with.
type Discard struct{}

// Restart does nothing.
func (Discard) Restart() {}

// Quote forgets q.
func (Discard) Quote(*provider.Quote) error { return nil }

// Reject does nothing.
func (Discard) Reject(string, string, string) {}
