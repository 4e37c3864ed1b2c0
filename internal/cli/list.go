package cli

import (
	"context"
	"strconv"

	"assay/internal/view"
)

// listFlags are the flags of every command that prints a list.
type listFlags struct {
	Limit int `default:"20" help:"How many to list, 1 to 100000."`
}

// check refuses a limit that cannot be meant.
func (f listFlags) check(help string) error {
	if f.Limit < 1 || f.Limit > 100_000 {
		return &usageError{text: "--limit must be 1 to 100000", help: help}
	}
	return nil
}

// listAll returns up to most elements of a list, page by page. NextCursor is
// set where the list goes on.
func listAll[T any](ctx context.Context, c *client, r request, most int) (view.Page[T], error) {
	all := view.Page[T]{Items: []T{}}
	for {
		r.query.Set("limit", strconv.Itoa(min(pageSize, most-len(all.Items))))
		var page view.Page[T]
		if err := c.do(ctx, r, &page); err != nil {
			return view.Page[T]{}, err
		}
		all.Items, all.NextCursor = append(all.Items, page.Items...), page.NextCursor
		if page.NextCursor == nil || len(all.Items) >= most {
			return all, nil
		}
		r.query.Set("cursor", *page.NextCursor)
	}
}

// moreText is the line below a list that goes on, else empty.
func moreText[T any](page view.Page[T]) string {
	if page.NextCursor == nil {
		return ""
	}
	return "There are more: raise --limit.\n"
}
