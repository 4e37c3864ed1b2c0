package provider

import "testing"

func TestSent_ResultDistinguishesServerErrorsFromMissingResponses(t *testing.T) {
	for _, c := range []struct {
		sent Sent
		want SentResult
	}{
		{Sent{Status: 200}, ResultOK},
		{Sent{Kind: KindStatus, Status: 304}, ResultNotModified},
		{Sent{Kind: KindStatus, Status: 404}, ResultRefused},
		{Sent{Kind: KindRateLimited, Status: 429}, ResultLimited},
		{Sent{Kind: KindServer, Status: 503}, ResultFailed},
		{Sent{Kind: KindConnect}, ResultNoResponse},
		{Sent{Kind: KindTimeout, Status: 200}, ResultNoResponse}, // the body did not arrive in time
		{Sent{Kind: KindProtocol, Status: 200}, ResultInvalid},
	} {
		if got := c.sent.Result(); got != c.want {
			t.Errorf("kind %q, status %d: got %s, want %s", c.sent.Kind, c.sent.Status, got, c.want)
		}
	}
}
