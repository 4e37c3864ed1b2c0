package refresh

import (
	"slices"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// hostQueue is the queue of requests to one host of a provider. Each queue has its own
// workers, so a host that does not respond delays no other host.
type hostQueue struct {
	provider string
	host     string   // "": the provider has one host, or the files are local
	files    []string // file keys; "": requests by name
	local    bool     // the files are on this machine and need no request
	// background means that names are requested in the background, one at a time and not
	// before until (microseconds).
	background bool
	until      atomic.Int64
}

// FetchKind returns the kind of work for fetching from a host of a provider.
func FetchKind(provider, host string) string {
	if host == "" {
		return "fetch:" + provider
	}
	return "fetch:" + provider + "/" + host
}

// queuesOf returns the host queues of a provider.
func queuesOf(d provider.Description) []*hostQueue {
	var out []*hostQueue
	for _, f := range d.Files {
		q := &hostQueue{provider: d.Name, host: f.Host, local: f.Local}
		if f.Local {
			q.host = ""
		}
		at := slices.IndexFunc(out, func(o *hostQueue) bool { return o.host == q.host && o.local == q.local })
		if at < 0 {
			at = len(out)
			out = append(out, q)
		}
		out[at].files = append(out[at].files, f.Key)
	}
	if len(out) == 0 {
		return []*hostQueue{{provider: d.Name, files: []string{""}, background: InBackground(d)}}
	}
	return out
}

// claim returns the claim for the next unit of the queue.
func (q *hostQueue) claim(owner string, now time.Time) Claim {
	c := Claim{Provider: q.provider, Files: q.files, Owner: owner, Reserve: 1}
	if q.local {
		c.Reserve = 0
	}
	// A wait longer than the pause means that the clock has been set back.
	wait := db.Moment(q.until.Load()).Sub(now)
	c.Background = q.background && (wait <= 0 || wait > backgroundPause)
	return c
}

// endpointsOf returns all endpoints of a provider.
func endpointsOf(d provider.Description) []Endpoint {
	if d.Shape != provider.Bulk {
		return []Endpoint{{Provider: d.Name}}
	}
	out := make([]Endpoint, 0, len(d.Files))
	for _, f := range d.Files {
		out = append(out, Endpoint{Provider: d.Name, File: f.Key})
	}
	return out
}
