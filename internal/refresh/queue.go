package refresh

import (
	"slices"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// hostQueue is the requests of one host of a provider, with workers of their own: a host
// that hangs keeps no other one waiting.
type hostQueue struct {
	provider string
	host     string   // that receives the requests; "" is the provider's only one, or this machine
	files    []string // keys; "" for what is requested by name
	local    bool     // its files are on this machine and cost no request
	// background says that names are requested in the background, one at a time, and not
	// before until, in microseconds.
	background bool
	until      atomic.Int64
}

// FetchKind names the work of fetching what a host of a provider serves.
func FetchKind(provider, host string) string {
	if host == "" {
		return "fetch:" + provider
	}
	return "fetch:" + provider + "/" + host
}

// queuesOf divides what is requested from a provider, its local files first.
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

// claim is how the work of the host queue is claimed at a time.
func (l *hostQueue) claim(owner string, now time.Time) Claim {
	c := Claim{Provider: l.provider, Files: l.files, Owner: owner, Reserve: 1}
	if l.local {
		c.Reserve = 0
	}
	// A clock that was set back must not keep it waiting for longer.
	wait := db.Moment(l.until.Load()).Sub(now)
	c.Background = l.background && (wait <= 0 || wait > backgroundPause)
	return c
}

// endpointsOf lists everything that can be requested from a provider, for ForgoUnits.
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
