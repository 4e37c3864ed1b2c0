package assay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/client/go/api"
)

// fake responds with its steps, one per request, and records the requests.
type fake struct {
	mu    sync.Mutex
	steps []func(w http.ResponseWriter)
	seen  []string // method, URL, key and body
	waits []time.Duration
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.seen = append(f.seen, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Idempotency-Key"), body))
	step := respond(500, `{"code":"unexpected"}`)
	if len(f.steps) > 0 {
		step, f.steps = f.steps[0], f.steps[1:]
	}
	f.mu.Unlock()
	step(w)
}

func respond(status int, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cut sends half a response and closes the connection.
func cut(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"items":[`)
	panic(http.ErrAbortHandler)
}

func start(t *testing.T, steps ...func(http.ResponseWriter)) (*Client, *fake) {
	t.Helper()
	f := &fake{steps: steps}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c, err := New(server.URL, Options{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	c.wait = func(ctx context.Context, d time.Duration) error {
		f.waits = append(f.waits, d)
		return ctx.Err()
	}
	generated, ok := c.ClientInterface.(*api.Client)
	if !ok {
		t.Fatalf("got a client of type %T, want *api.Client", c.ClientInterface)
	}
	retries, ok := generated.Client.(*retrier)
	if !ok {
		t.Fatalf("got an HTTP client of type %T, want *retrier", generated.Client)
	}
	retries.wait = c.wait
	return c, f
}

func purchase(c *Client, key string) (*api.PostListingsIdPurchaseResponse, error) {
	return c.PostListingsIdPurchaseWithResponse(context.Background(), "1", &api.PostListingsIdPurchaseParams{IdempotencyKey: key}, api.PurchaseBody{BuyerId: "b"})
}

func TestRetry_SendsTheSameKeyAndBodyUntilThePurchaseSucceeds(t *testing.T) {
	t.Parallel()
	c, f := start(t, respond(503, `{}`, "Retry-After", "7"), cut, respond(429, `{}`), respond(201, `{"id":"9"}`))
	got, err := purchase(c, "")
	if err != nil || got.JSON201.Id != "9" {
		t.Fatalf("got %+v, %v, want the trade 9", got, err)
	}
	slices.Sort(f.seen)
	if len(f.seen) != 4 || len(slices.Compact(f.seen)) != 1 || strings.Contains(f.seen[0], "purchase  {") {
		t.Errorf("got requests %q, want 4 equal ones with a key", f.seen)
	}
	if f.waits[0] != 7*time.Second || f.waits[1] < 500*time.Millisecond || f.waits[1] > time.Second {
		t.Errorf("got waits %v, want the demanded 7 s, then half a second to a second", f.waits)
	}
}

func TestRetry_KeepsTheCallersKey(t *testing.T) {
	t.Parallel()
	c, f := start(t, respond(201, `{"id":"9"}`))
	if _, err := purchase(c, "mine"); err != nil || !strings.Contains(f.seen[0], " mine ") {
		t.Errorf("got requests %q, %v, want the key mine", f.seen, err)
	}
}

func TestRetry_StopsAtARefusal(t *testing.T) {
	t.Parallel()
	c, f := start(t, respond(409, `{"status":409,"code":"already_listed","detail":"The asset is listed.","requestId":"R"}`))
	_, err := purchase(c, "k")
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != api.ProblemCodeAlreadyListed || e.Status != 409 || e.RequestID != "R" || Temporary(err) || len(f.seen) != 1 {
		t.Errorf("got %v after %d requests, want already_listed after one", err, len(f.seen))
	}
}

func TestRetry_DoesNotRepeatAPostThatMayHaveBeenExecuted(t *testing.T) {
	t.Parallel()
	c, f := start(t, cut, respond(201, `{}`))
	if _, err := c.PostWebhooksWithResponse(t.Context(), api.WebhookBody{Url: "https://shop.example"}); !Temporary(err) || len(f.seen) != 1 {
		t.Errorf("got %v after %d requests, want the lost connection after one", err, len(f.seen))
	}
}

func TestRetry_EndsAfterAllAttemptsOrALongDemand(t *testing.T) {
	t.Parallel()
	failed := respond(500, `{}`)
	c, f := start(t, failed, failed, failed, failed, failed)
	if _, err := c.GetPricesSnapshotManifestWithResponse(t.Context(), nil); !Temporary(err) || len(f.seen) != 5 {
		t.Errorf("got %v after %d requests, want 500 after 5", err, len(f.seen))
	}
	c, f = start(t, respond(429, `{}`, "Retry-After", "3600"))
	if _, err := c.GetPricesSnapshotManifestWithResponse(t.Context(), nil); !Temporary(err) || len(f.seen) != 1 {
		t.Errorf("got %v after %d requests, want 429 after one", err, len(f.seen))
	}
}

func TestItems_ListsAllPages(t *testing.T) {
	t.Parallel()
	c, f := start(t, respond(200, `{"items":[{"marketHashName":"a"},{"marketHashName":"b"}],"nextCursor":"x"}`),
		respond(200, `{"items":[{"marketHashName":"c"}],"nextCursor":null}`))
	var names []string
	for item, err := range c.Items(t.Context(), api.GetPricesItemsParams{Limit: new(int64(2))}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, item.MarketHashName)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || !strings.Contains(f.seen[1], "cursor=x") {
		t.Errorf("got %v with requests %q, want a, b and c", names, f.seen)
	}
}

func TestFollow_BeginsWithASnapshotAndAfterAnExpiredCursor(t *testing.T) {
	t.Parallel()
	snapshot := func(number int) func(http.ResponseWriter) {
		return respond(200, fmt.Sprintf(`{"change":"%d","items":[{"marketHashName":"a"}]}`, number))
	}
	page := func(next int) func(http.ResponseWriter) {
		return respond(200, fmt.Sprintf(`{"items":[{"change":"%d","marketHashName":"b"}],"next":"%[1]d"}`, next))
	}
	failed := respond(500, `{}`)
	c, f := start(t, snapshot(5), respond(200, `{"items":[],"next":"5"}`), page(6), failed, failed, failed, failed, failed, page(7),
		respond(410, `{"code":"cursor_expired"}`), snapshot(20), respond(403, `{"code":"forbidden"}`))
	var got []string
	for batch, err := range c.Follow(t.Context(), 0, FollowOptions{}) {
		got = append(got, fmt.Sprint(batch.Cursor, batch.Reset, len(batch.Prices), Temporary(err), err != nil))
	}
	want := []string{"5 true 1 false false", "6 false 1 false false", "6 false 0 true true", "7 false 1 false false", "20 true 1 false false", "20 false 0 false true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; requests %q", got, want, f.seen)
	}
}

func TestFollow_ContinuesAtACursor(t *testing.T) {
	t.Parallel()
	c, f := start(t, respond(200, `{"items":[{"change":"9"}],"next":"9"}`))
	for batch, err := range c.Follow(t.Context(), 8, FollowOptions{}) {
		if err != nil || batch.Reset || batch.Cursor != 9 {
			t.Errorf("got %+v, %v, want the change 9", batch, err)
		}
		break
	}
	if !strings.Contains(f.seen[0], "since=8") {
		t.Errorf("got requests %q, want since=8", f.seen)
	}
}

func TestFollow_SendsItsOptionsAndReturnsTheFigures(t *testing.T) {
	t.Parallel()
	const price = `"interval":{"low":1,"high":3},"average":2,"usedMarkets":4`
	c, f := start(t, respond(200, `{"change":"5","items":[{`+price+`}]}`), respond(200, `{"items":[{"change":"6",`+price+`}],"next":"6"}`))
	var got []api.PublishedPrice
	for batch, err := range c.Follow(t.Context(), 0, FollowOptions{Fields: new("interval,average,usedMarkets"), Currency: new("EUR")}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, batch.Prices...); !batch.Reset {
			break
		}
	}
	want := api.PublishedPrice{Interval: &api.Interval{Low: 1, High: 3}, Average: new(2.0), UsedMarkets: new(int64(4))}
	if !reflect.DeepEqual(got, []api.PublishedPrice{want, want}) {
		t.Errorf("got %+v, want the figures of %+v twice", got, want)
	}
	for _, request := range f.seen {
		if !strings.Contains(request, "currency=EUR") || !strings.Contains(request, "fields=interval") {
			t.Errorf("got the request %q, want fields and currency", request)
		}
	}
}

func TestVerifyWebhook_AcceptsOnlySignedAndRecentMessages(t *testing.T) {
	t.Parallel()
	// The example of the specification of Standard Webhooks.
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`
	header := http.Header{}
	for name, value := range map[string]string{
		"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp": "1614265330",
		"Webhook-Signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	} {
		header.Set(name, value)
	}
	sent := time.Unix(1614265330, 0)
	other := "whsec_" + strings.Repeat("A", 32)
	for name, test := range map[string]struct {
		now     time.Time
		body    string
		secrets []string
		ok      bool
	}{
		"one secret":      {sent, body, []string{secret}, true},
		"two secrets":     {sent, body, []string{other, secret}, true},
		"within the time": {sent.Add(Tolerance), body, []string{secret}, true},
		"another secret":  {sent, body, []string{other}, false},
		"no secret":       {sent, body, nil, false},
		"another body":    {sent, body + " ", []string{secret}, false},
		"too old":         {sent.Add(Tolerance + time.Second), body, []string{secret}, false},
		"too new":         {sent.Add(-Tolerance - time.Second), body, []string{secret}, false},
		"not a secret":    {sent, body, []string{"%"}, false},
	} {
		if err := verifyAt(test.now, header, []byte(test.body), test.secrets); (err == nil) != test.ok {
			t.Errorf("%s: got error %v, want accepted=%t", name, err, test.ok)
		}
	}
	if err := VerifyWebhook(header, []byte(body), secret); err == nil {
		t.Error("message of 2021: got no error, want one")
	}
}

func TestError_KeepsTheProblem(t *testing.T) {
	t.Parallel()
	var e Error
	if err := json.Unmarshal([]byte(`{"status":404,"code":"user_not_found","detail":"There is no user u1."}`), &e); err != nil || e.Error() != "user_not_found (404): There is no user u1." {
		t.Errorf("got the text %q, error %v, want the code, the status and the detail", e.Error(), err)
	}
}
