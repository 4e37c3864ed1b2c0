package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Parts of the page at /docs. The page has no script and loads nothing from other hosts.
var (
	//go:embed docs.html
	docsHTML string
	//go:embed docs.css
	docsCSS string
)

// docsGroup is a section of the page: the operations with the same tag.
type docsGroup struct {
	Name       string
	Operations []docsOperation
}

// docsOperation is an operation on the page.
type docsOperation struct {
	ID, Method, Path, Summary, Access string
	Params                            []docsParam
	Body                              string // description of the body; empty: no body
	Responses                         []docsResponse
}

type docsParam struct{ Name, In, Doc, Values, Default string }

type docsResponse struct {
	Status int
	Text   string
	Good   bool
}

// docsPages is the page at /docs.
type docsPages struct {
	content template.HTML // without a frame
	page    cached        // for a request without a session of the operator's page
	policy  string        // Content-Security-Policy of page, which allows only the page's own style
}

// framer shows content within the frame of the operator's page. It returns false, and sends nothing,
// if the request has no session.
type framer interface {
	Frame(w http.ResponseWriter, r *http.Request, title, section string, content template.HTML) bool
}

// renderDocs returns the page at /docs.
func renderDocs(operations []operation, version string) docsPages {
	var groups []docsGroup
	for _, op := range operations {
		name := tag(op.path)
		i := slices.IndexFunc(groups, func(g docsGroup) bool { return g.Name == name })
		if i < 0 {
			groups, i = append(groups, docsGroup{Name: name}), len(groups)
		}
		groups[i].Operations = append(groups[i].Operations, docsOperation{
			ID: operationID(op), Method: op.method, Path: op.path, Summary: op.summary, Access: docsAccess(op),
			Params: docsParams(op.params), Body: docsBody(op.body), Responses: docsResponses(op),
		})
	}
	parts := template.Must(template.New("docs").Parse(docsHTML))
	render := func(name string, data map[string]any) []byte {
		var out bytes.Buffer
		if err := parts.ExecuteTemplate(&out, name, data); err != nil {
			panic("render the page at /docs: " + err.Error()) // all inputs are constants of this package
		}
		return out.Bytes()
	}
	d := docsPages{content: template.HTML(render("content", map[string]any{"Version": version, "Groups": groups}))} //nolint:gosec // rendered above
	d.page = cache("text/html; charset=utf-8", render("page", map[string]any{
		"Content": d.content, "Style": template.CSS(docsCSS), //nolint:gosec // embedded, not from a request
	}))
	sum := sha256.Sum256([]byte(docsCSS))
	d.policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return d
}

func docsAccess(op operation) string {
	if op.access == nil {
		return "public"
	}
	var who []string
	for _, role := range op.access {
		who = append(who, map[string]string{
			Market: "x-market-sync-secret", Platform: "platform token", local: "from this machine",
		}[role])
	}
	return strings.Join(append(who, "admin token"), " or ")
}

func docsParams(params []param) []docsParam {
	var all []docsParam
	for _, p := range params {
		shown := docsParam{Name: p.name, In: p.in, Doc: p.doc, Default: p.preset}
		if enum, ok := p.schema["enum"].([]string); ok {
			shown.Values = strings.Trim(strings.Join(enum, ", "), ", ")
		}
		all = append(all, shown)
	}
	return all
}

func docsBody(b *body) string {
	if b == nil {
		return ""
	}
	return "JSON, up to " + strconv.FormatInt(b.limit>>20, 10) + " MiB"
}

func docsResponses(op operation) []docsResponse {
	var all []docsResponse
	for _, status := range slices.Sorted(maps.Keys(op.responses)) {
		all = append(all, docsResponse{status, http.StatusText(status), true})
	}
	for _, status := range op.problems() {
		if _, good := op.responses[status]; !good {
			all = append(all, docsResponse{status, http.StatusText(status), false})
		}
	}
	return all
}
