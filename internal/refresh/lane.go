package refresh

import (
	"slices"

	"assay/internal/provider"
)

// lane is a part of what is asked of a source that has workers of its own, so
// that a host that hangs keeps none of the others waiting.
type lane struct {
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

// lanesOf divides what is requested from a provider, its local files first.
func lanesOf(d provider.Description) []lane {
	var out []lane
	for _, f := range d.Files {
		l := lane{source: d.Name, host: f.Host, local: f.Local}
		if f.Local {
			l.host = ""
		}
		at := slices.IndexFunc(out, func(o lane) bool { return o.host == l.host && o.local == l.local })
		if at < 0 {
			at = len(out)
			out = append(out, l)
		}
		out[at].files = append(out[at].files, f.Key)
	}
	if len(out) == 0 {
		return []lane{{source: d.Name, files: []string{""}}}
	}
	return out
}

// claim is how the lane's work is claimed.
func (l *lane) claim(owner string) Claim {
	c := Claim{Source: l.source, Files: l.files, Owner: owner, Reserve: 1}
	if l.local {
		c.Reserve = 0
	}
	return c
}

// askable lists everything that can be requested from a provider, for ForgoUnits.
func askable(d provider.Description) []Askable {
	if d.Shape != provider.Bulk {
		return []Askable{{Source: d.Name}}
	}
	out := make([]Askable, 0, len(d.Files))
	for _, f := range d.Files {
		out = append(out, Askable{Source: d.Name, File: f.Key})
	}
	return out
}
