package assay

import (
	"context"
	"iter"

	"assay/client/go/api"
)

// Pages lists all items of a paged route, for routes without a method of their own. It stops
// at the first error.
func Pages[T any](fetch func(cursor *string) (items []T, next *string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var cursor *string
		for {
			items, next, err := fetch(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil {
				return
			}
			cursor = next
		}
	}
}

// Items lists the priced items that match.
func (c *Client) Items(ctx context.Context, p api.GetPricesItemsParams) iter.Seq2[api.PricedItem, error] {
	return Pages(func(cursor *string) ([]api.PricedItem, *string, error) {
		if cursor != nil {
			p.Cursor = cursor
		}
		got, err := c.GetPricesItemsWithResponse(ctx, &p)
		if err != nil {
			return nil, nil, err
		}
		return got.JSON200.Items, got.JSON200.NextCursor, nil
	})
}

// Listings lists the listings that match, newest first.
func (c *Client) Listings(ctx context.Context, p api.GetListingsParams) iter.Seq2[api.Listing, error] {
	return Pages(func(cursor *string) ([]api.Listing, *string, error) {
		if cursor != nil {
			p.Cursor = cursor
		}
		got, err := c.GetListingsWithResponse(ctx, &p)
		if err != nil {
			return nil, nil, err
		}
		return got.JSON200.Items, got.JSON200.NextCursor, nil
	})
}

// Trades lists the trades that match, newest first.
func (c *Client) Trades(ctx context.Context, p api.GetTradesParams) iter.Seq2[api.Trade, error] {
	return Pages(func(cursor *string) ([]api.Trade, *string, error) {
		if cursor != nil {
			p.Cursor = cursor
		}
		got, err := c.GetTradesWithResponse(ctx, &p)
		if err != nil {
			return nil, nil, err
		}
		return got.JSON200.Items, got.JSON200.NextCursor, nil
	})
}
