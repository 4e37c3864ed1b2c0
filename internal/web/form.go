package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"assay/internal/fault"
)

// form is the content of a form of a page. A form that the service refused is shown again with its
// entries, so that the user corrects only the faulty one.
type form struct {
	Entries url.Values
	Refused *fault.Error // why the entries were refused; nil: they were not
}

// refusedForm returns the form that a request sent. It leaves out secrets, which no page repeats.
func refusedForm(r *http.Request, refused *fault.Error) form {
	f := form{maps.Clone(r.PostForm), refused}
	for _, secret := range []string{"csrf", "password"} {
		f.Entries.Del(secret)
	}
	return f
}

// Get returns an entry of the form.
func (f form) Get(name string) string { return f.Entries.Get(name) }

// Has reports whether the form has an entry, such as a ticked box.
func (f form) Has(name, value string) bool { return slices.Contains(f.Entries[name], value) }

// Problem returns the reason why the form was refused as a sentence. It is empty if it was not.
func (f form) Problem() string {
	if f.Refused == nil {
		return ""
	}
	return faultText(f.Refused)
}

// fieldsShown is the number of faulty fields that a page names.
const fieldsShown = 3

// faultText returns an error with its first fields in sentences. It omits the hint at the member
// errors, which only a response of the API has.
func faultText(f *fault.Error) string {
	texts := []string{sentence(strings.ReplaceAll(f.Detail, "; see errors", ""))}
	for _, field := range f.Fields[:min(fieldsShown, len(f.Fields))] {
		if !strings.Contains(f.Detail, field.Detail) {
			texts = append(texts, sentence(strings.TrimPrefix(field.Pointer+": "+field.Detail, ": ")))
		}
	}
	return strings.Join(texts, " ")
}

// showForm responds with a page that has a form. The status is that of the refusal, if there is one.
func (s *pages) showForm(w http.ResponseWriter, r *http.Request, entered form, page string, data any) error {
	status := http.StatusOK
	if entered.Refused != nil {
		status = entered.Refused.Kind.Status()
	}
	s.execute(w, r, status, page, "base.html", data)
	return nil
}
