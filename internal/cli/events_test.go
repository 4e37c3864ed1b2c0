package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"assay/internal/view"
)

// listEvents simulates a server with the events 812 to 814, two per page. The server has deleted
// the earlier events.
func (f *fakeServer) listEvents(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.eventPolls++
	away := f.awayAt > 0 && (f.eventPolls == f.awayAt || f.eventPolls == f.awayAt+1) // net/http retries the first broken request itself
	f.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	q := r.URL.Query()
	after, _ := strconv.Atoi(q.Get("after"))
	if after < 811 {
		refuse(w, 410, `{"title":"Gone","status":410,"detail":"This event number has expired or is unknown. Continue after 811.","code":"cursor_expired","change":"811","requestId":"r4"}`)
		return
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	all := []string{
		`{"number":"812","id":"7","kind":"price.changed","at":"2026-01-02T03:04:05Z","data":{"items":[{},{}]}}`,
		`{"number":"813","id":"9","kind":"job.finished","at":"2026-01-02T03:04:06Z","data":{"jobId":"17"}}`,
		`{"number":"814","id":"8","kind":"inventory.priced","at":"2026-01-02T03:04:07Z","data":{"userId":"u1"}}`,
	}[after-811:]
	if len(all) == 0 && q.Get("wait") != "" {
		<-r.Context().Done() // until the client is interrupted
		return
	}
	page := all[:min(len(all), limit, 2)]
	response(200, fmt.Sprintf(`{"items":[%s],"next":"%d","upToDate":%t}`, strings.Join(page, ","), after+len(page), len(page) == len(all)))(w, r)
}

// The connection breaks once, as it does when the server restarts.
func TestEvents_FollowPrintsEachEventOnceUntilInterrupted(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		f := newFakeServer(t)
		f.awayAt = 2
		ctx, interrupt := context.WithCancel(context.Background())
		args := []string{"events", "--after", "811", "--follow"}
		if asJSON {
			args = append(args, "--json")
		}
		p, _, errs := program(f, args...)
		lines := &lineCounter{after: 3, then: interrupt}
		p.Stdout = lines
		if code := p.Run(ctx); code != exitOK {
			t.Errorf("got exit code %d, want 0: %s", code, errs)
		}
		if !strings.Contains(errs.String(), "retrying") {
			t.Errorf("got the errors %q, want a message that the command retries", errs)
		}
		if want := "812  2026-01-02 03:04:05 UTC  price.changed  2 price changes\n" +
			"813  2026-01-02 03:04:06 UTC  job.finished  {\"jobId\":\"17\"}\n" +
			"814  2026-01-02 03:04:07 UTC  inventory.priced  {\"userId\":\"u1\"}\n"; !asJSON && lines.text.String() != want {
			t.Errorf("got the output\n%s\nwant\n%s", &lines.text, want)
		}
		number := 812
		for line := range strings.Lines(lines.text.String()) {
			var e view.NumberedEvent
			if err := json.Unmarshal([]byte(line), &e); asJSON && (err != nil || e.Number != strconv.Itoa(number)) {
				t.Errorf("line %q: got error %v, want event %d", line, err, number)
			}
			number++
		}
		if number != 815 {
			t.Errorf("got %d lines, want 3", number-812)
		}
	}
}
