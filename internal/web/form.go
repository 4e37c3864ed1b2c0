package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

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
	return sentence(f.Refused.Error())
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
