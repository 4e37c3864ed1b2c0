package cli

import (
	"context"
	"io"
	"strconv"

	"assay/internal/view"
)

// listFlags are the flags of commands that print a list.
type listFlags struct {
	Limit int `default:"20" help:"Maximum number of results, 1 to 100000."`
}

// check validates the flags.
func (f listFlags) check() error {
	if f.Limit < 1 || f.Limit > 100_000 {
		return &usageError{text: "--limit must be 1 to 100000"}
	}
	return nil
}

// showList prints a list of the running server as a table with the given header. It calls row
// for each element, and reports whether there are more elements.
func showList[T any](ctx context.Context, s *session, f listFlags, r request, header []string, row func(*T) []string) error {
	if err := f.check(); err != nil {
		return err
	}
	api, err := s.server()
	if err != nil {
		return err
	}
	page, err := listAll[T](ctx, api, r, f.Limit)
	if err != nil {
		return err
	}
	return s.out.result(page, func(w io.Writer) {
		rows := [][]string{header}
		for i := range page.Items {
			rows = append(rows, row(&page.Items[i]))
		}
		table(w, rows)
		if page.NextCursor != nil {
			_, _ = io.WriteString(w, "There are more results: increase --limit.\n")
		}
	})
}

// listAll returns up to limit elements of a list, page by page. NextCursor is set if there are
// more elements.
func listAll[T any](ctx context.Context, c *client, r request, limit int) (view.Page[T], error) {
	all := view.Page[T]{Items: []T{}}
	for {
		r.query.Set("limit", strconv.Itoa(min(pageSize, limit-len(all.Items))))
		page, err := call[view.Page[T]](ctx, c, r)
		if err != nil {
			return view.Page[T]{}, err
		}
		all.Items, all.NextCursor = append(all.Items, page.Items...), page.NextCursor
		if page.NextCursor == nil || len(all.Items) >= limit {
			return all, nil
		}
		r.query.Set("cursor", *page.NextCursor)
	}
}
