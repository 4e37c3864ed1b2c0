package refresh

import (
	"slices"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// hostQueue holds the requests to one host of a provider. It has its own workers, so that a
// host that hangs delays no other.
type hostQueue struct {
	provider string
	host     string   // "": the provider's only host, or this machine
	files    []string // keys; "" for requests by name
	local    bool     // its files are on this machine and cost no request
	// background says that names are requested in the background: one at a time, and none
	// before until, in microseconds.
	background bool
	until      atomic.Int64
}

// FetchKind is the kind of work of fetching what a host of a provider serves.
func FetchKind(provider, host string) string {
	if host == "" {
		return "fetch:" + provider
	}
	return "fetch:" + provider + "/" + host
}

// queuesOf divides a provider's requests by host, local files first.
func queuesOf(d provider.Description) []*hostQueue {
	var out []*hostQueue
	for _, f := range d.Files {
		l := &hostQueue{provider: d.Name, host: f.Host, local: f.Local}
		if f.Local {
			l.host = ""
		}
		at := slices.IndexFunc(out, func(o *hostQueue) bool { return o.host == l.host && o.local == l.local })
		if at < 0 {
			at = len(out)
			out = append(out, l)
		}
		out[at].files = append(out[at].files, f.Key)
	}
	if len(out) == 0 {
		return []*hostQueue{{provider: d.Name, files: []string{""}, background: InBackground(d)}}
	}
	return out
}

// claim is the claim for the work of the host queue now.
func (l *hostQueue) claim(owner string, now time.Time) Claim {
	c := Claim{Provider: l.provider, Files: l.files, Owner: owner, Reserve: 1}
	if l.local {
		c.Reserve = 0
	}
	// A clock that was set back does not make the pause longer.
	wait := db.Moment(l.until.Load()).Sub(now)
	c.Background = l.background && (wait <= 0 || wait > backgroundPause)
	return c
}

// endpointsOf lists everything that can be requested from a provider, for AbandonUnits.
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
