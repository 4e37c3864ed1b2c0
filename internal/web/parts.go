package web

import (
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// figure is a number with its name, a note and a small chart.
type figure struct {
	Label string
	Value string
	Note  string        // empty: none
	Href  string        // page with the details; empty: none
	Tone  string        // tone of a badge; empty: neutral
	Spark template.HTML // chart.Sparkline; empty: none
}

// emptyState replaces a list without rows. It explains how rows appear.
type emptyState struct{ Title, Text string }

// confirmation is the question before an action. It names how many things change.
type confirmation struct {
	Question string // such as "Accept 12 held prices?"
	Text     string // what happens
	Button   string // such as "Accept 12 prices"
	Danger   bool   // the action cannot be undone, or it sends requests
	Fees     largeFees
}

// confirmPage shows a question and repeats the form in hidden fields.
type confirmPage struct {
	frame
	confirmation
	Action string
	Back   string
	Fields []field
}

// confirmed reports whether the user has confirmed the form. If not, it responds with a page that
// contains the question, and the handler must change nothing. The script shows the page as a dialog.
func (s *pages) confirmed(w http.ResponseWriter, r *http.Request, sess session, question confirmation) (bool, error) {
	if r.PostFormValue("confirmed") == "1" {
		return true, nil
	}
	page := confirmPage{
		frame: s.frame(strings.TrimSuffix(question.Question, "?"), "", &sess), confirmation: question,
		Action: r.URL.RequestURI(), Back: localPath(r.PostFormValue("back")),
	}
	for _, name := range slices.Sorted(maps.Keys(r.PostForm)) {
		for _, value := range r.PostForm[name] {
			page.Fields = append(page.Fields, field{name, value})
		}
	}
	return false, s.show(w, r, "confirm", page)
}

// apiCall is the API request that corresponds to a page.
type apiCall struct {
	Method string
	Path   string // with the query
	Body   string // JSON; empty: none
}

// Command returns the call as a command.
func (c apiCall) Command() string {
	var b strings.Builder
	b.WriteString(`curl -H "Authorization: Bearer $ASSAY_KEY" `)
	if c.Method != http.MethodGet {
		b.WriteString("-X " + c.Method + " ")
	}
	if c.Body != "" {
		b.WriteString("-H 'Content-Type: application/json' -d " + shellQuoted(c.Body) + " ")
	}
	b.WriteString(`"$ASSAY_URL"` + shellQuoted(c.Path))
	return b.String()
}

// shellQuoted returns text in single quotes.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
