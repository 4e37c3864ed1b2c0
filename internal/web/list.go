package web

import (
	"cmp"
	"encoding/csv"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"assay/internal/view"
)

// listState is the state of a list in its URL: the filters, the order and the position. Templates
// use its methods for links, which keep all other filters.
type listState struct {
	path   string
	values url.Values // filters that are set, and sort
	cursor string
	next   *string
}

// listOf reads the state of a list from a request. The filters are names of query parameters.
func listOf(r *http.Request, filters ...string) listState {
	q := r.URL.Query()
	l := listState{path: r.URL.Path, values: url.Values{}, cursor: q.Get("cursor")}
	for _, name := range append(filters, "sort") {
		if v := q.Get(name); v != "" {
			l.values.Set(name, v)
		}
	}
	return l
}

// until returns the list with the cursor of its next page. The cursor is nil on the last page.
func (l listState) until(next *string) listState {
	l.next = next
	return l
}

// Get returns the value of a filter.
func (l listState) Get(name string) string { return l.values.Get(name) }

// With returns the URL of the first page with one changed filter. An empty value removes it.
func (l listState) With(name, value string) string { return l.url(name, value) }

// First returns the URL of the first page. It is empty on the first page.
func (l listState) First() string {
	if l.cursor == "" {
		return ""
	}
	return l.url()
}

// Next returns the URL of the next page. It is empty on the last page.
func (l listState) Next() string {
	if l.next == nil {
		return ""
	}
	return l.url("cursor", *l.next)
}

// Clear returns the URL without filters. It is empty if none is set.
func (l listState) Clear() string {
	if len(l.values) == 0 || len(l.values) == 1 && l.values.Has("sort") {
		return ""
	}
	return l.path
}

// CSV returns the URL of the list as a file. The handler calls sendCSV if the parameter format
// is csv.
func (l listState) CSV() string { return l.url("format", "csv") }

// Tab returns the tab that sets a filter.
func (l listState) Tab(label, name, value string) tab {
	return tab{Label: label, Href: l.With(name, value), Current: l.Get(name) == value}
}

// field is a hidden field of a form.
type field struct{ Name, Value string }

// Hidden returns the fields that keep all filters except those that the form itself contains.
func (l listState) Hidden(except ...string) []field {
	var out []field
	for name := range l.values {
		if !slices.Contains(except, name) {
			out = append(out, field{name, l.values.Get(name)})
		}
	}
	slices.SortFunc(out, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// column is the header of a sortable column.
type column struct {
	Label, Href, Order string
	Number             bool
}

// Column returns the header of a column. The first click sorts ascending, the second descending.
func (l listState) Column(label, sort string) column {
	switch l.Get("sort") {
	case sort:
		return column{Label: label, Href: l.With("sort", "-"+sort), Order: "ascending"}
	case "-" + sort:
		return column{Label: label, Href: l.With("sort", sort), Order: "descending"}
	}
	return column{Label: label, Href: l.With("sort", sort)}
}

// Number returns the header of a column of numbers. The first click sorts descending.
func (l listState) Number(label, sort string) column {
	c := l.Column(label, sort)
	if c.Number = true; c.Order == "" {
		c.Href = l.With("sort", "-"+sort)
	}
	return c
}

// url returns the URL of the list with changed parameters, which are pairs of names and values.
func (l listState) url(changes ...string) string {
	q := maps.Clone(l.values)
	for i := 0; i+1 < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	if len(q) == 0 {
		return l.path
	}
	return l.path + "?" + q.Encode()
}

// sendCSV responds with a file of rows. The first row contains the names of the columns. If a
// row cannot be read, sendCSV aborts the connection. Otherwise the browser would store an
// incomplete file as complete.
func (s *pages) sendCSV(w http.ResponseWriter, r *http.Request, name string, columns []string, rows iter.Seq2[[]string, error]) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write(columns) // fails if the browser has disconnected
	for row, err := range rows {
		if err != nil {
			s.Logger.ErrorContext(r.Context(), "file could not be sent", "name", name, "error", err)
			panic(http.ErrAbortHandler)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return nil
}

// records returns the rows of all pages of a list. It starts with the given page and reads the
// following pages one by one.
func records[T any](page view.Page[T], record func(*T) []string, read func(cursor string) (view.Page[T], error)) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for {
			for i := range page.Items {
				if !yield(record(&page.Items[i]), nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			var err error
			if page, err = read(*page.NextCursor); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// csvTime formats a time for a file. An unknown time is empty.
func csvTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
