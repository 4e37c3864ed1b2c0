package refresh

import (
	"slices"

	"assay/internal/provider"
)

// hostQueue is the requests of one host of a provider, with workers of their own: a host
// that hangs keeps no other one waiting.
type hostQueue struct {
	source string
	host   string   // that receives the requests; "" is the provider's only one, or this machine
	files  []string // keys; "" for what is requested by name
	local  bool     // its files are on this machine and cost no request
}

// FetchKind names the work of fetching what a host of a source serves.
func FetchKind(source, host string) string {
	if host == "" {
		return "fetch:" + source
	}
	return "fetch:" + source + "/" + host
}

// queuesOf divides what is requested from a provider, its local files first.
func queuesOf(d provider.Description) []hostQueue {
	var out []hostQueue
	for _, f := range d.Files {
		l := hostQueue{source: d.Name, host: f.Host, local: f.Local}
		if f.Local {
			l.host = ""
		}
		at := slices.IndexFunc(out, func(o hostQueue) bool { return o.host == l.host && o.local == l.local })
		if at < 0 {
			at = len(out)
			out = append(out, l)
		}
		out[at].files = append(out[at].files, f.Key)
	}
	if len(out) == 0 {
		return []hostQueue{{source: d.Name, files: []string{""}}}
	}
	return out
}

// claim is how the work of the host queue is claimed.
func (l *hostQueue) claim(owner string) Claim {
	c := Claim{Source: l.source, Files: l.files, Owner: owner, Reserve: 1}
	if l.local {
		c.Reserve = 0
	}
	return c
}

// endpointsOf lists everything that can be requested from a provider, for ForgoUnits.
func endpointsOf(d provider.Description) []Endpoint {
	if d.Shape != provider.Bulk {
		return []Endpoint{{Source: d.Name}}
	}
	out := make([]Endpoint, 0, len(d.Files))
	for _, f := range d.Files {
		out = append(out, Endpoint{Source: d.Name, File: f.Key})
	}
	return out
}
