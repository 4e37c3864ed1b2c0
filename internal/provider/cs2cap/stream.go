package cs2cap

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// item is a name and its phase, if any.
type item struct{ name, phase string }

// sales holds the known sales of each item in a month.
type sales map[item]int64

var (
	// lineNames are itemNames and the code of an error.
	lineNames    = []string{"code", "market_hash_name", "phase", "quotes"}
	saleNames    = []string{"market_hash_name", "phase", "summary"}
	summaryNames = []string{"sales_30d", "steam_sales_30d"}
)

// fetchStream reads the sales and then the stream of all offers. The sales come first, so a
// failure there does not use up a stream start.
func (s *Provider) fetchStream(ctx context.Context, call provider.Call, sink provider.Sink) (provider.Result, error) {
	if _, err := s.describe.FileOf(call); err != nil {
		return provider.Result{}, err
	}
	monthly, err := s.fetchSales(ctx, call)
	if err != nil {
		return provider.Result{}, err
	}
	q := url.Values{}
	for _, m := range s.describe.Markets {
		q.Add("providers", m.Key)
	}
	req := provider.Request{Method: http.MethodPost, URL: s.base + "/v1/prices?" + q.Encode(), Header: s.header(), Meter: call.Meter}
	return provider.Read(ctx, s.client, req, func(ctx context.Context, body io.Reader) (provider.Result, error) {
		return s.readStream(ctx, body, monthly, sink)
	})
}

func (s *Provider) fetchSales(ctx context.Context, call provider.Call) (sales, error) {
	if s.sales == nil {
		return nil, nil
	}
	req := provider.Request{URL: s.base + "/v1/market/items", Header: s.header(), Meter: call.Meter}
	return provider.Read(ctx, s.sales, req, readSales)
}

// readStream reads one item from each line. The last line is not marked, so a stream that is
// truncated between lines looks complete. Only a comparison with the length of the previous
// stream can detect it. A market without quotes is silent.
func (s *Provider) readStream(ctx context.Context, body io.Reader, monthly sales, sink provider.Sink) (provider.Result, error) {
	a := contents{sales: monthly, quoted: make([]bool, len(s.describe.Markets))}
	cells, inner := make([]feed.Cell, len(lineNames)), make([]feed.Cell, len(quoteNames))
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		return r.Lines(func() error {
			ok, err := r.Row(lineNames, cells)
			switch {
			case !ok || err != nil:
				return err
			case cells[1].Kind == feed.Absent && cells[0].Kind == feed.Text:
				return feed.Malformed("the stream ends with an error: %s", feed.Clip(cells[0].Text))
			}
			return s.readItem(r, &a, cells[1:], inner)
		})
	})
	if err != nil {
		return provider.Result{}, err
	}
	for i, m := range s.describe.Markets {
		if !a.quoted[i] {
			a.result.Silent = append(a.result.Silent, m.Key)
		}
	}
	return a.result, nil
}

// maxSold is the maximum number of items with sales. It bounds memory use. CS2 has 40,000
// items.
const maxSold = 100_000

// readSales reads the monthly sales of each item: the sum of Steam's count and of cs2cap's
// count, which is an estimate from listings that disappear. Either count may be missing. If
// cs2cap's count is missing and Steam's is 0, the sales are unknown.
func readSales(ctx context.Context, body io.Reader) (sales, error) {
	monthly := sales{}
	cells, inner := make([]feed.Cell, len(saleNames)), make([]feed.Cell, len(summaryNames))
	row := func(r *feed.Reader) error {
		ok, err := r.Row(saleNames, cells)
		if !ok || err != nil {
			return err
		}
		var key item
		if key.name, ok = r.Name("", cells[0]); !ok {
			return nil
		}
		if key.phase = feed.Phase(cells[1].Text); key.phase == "" && !cells[1].Empty() {
			r.Reject("", cells[0].Text, feed.RejectPhase)
			return nil
		}
		if !r.Within(cells[2], summaryNames, inner) {
			return nil
		}
		own, reason := inner[0].Count()
		steam, steamReason := inner[1].Count()
		if reason != "" || steamReason != "" {
			r.Reject("", cells[0].Text, feed.RejectCount)
			return nil
		}
		r.Count(1)
		if _, twice := monthly[key]; twice || own < 0 && steam <= 0 {
			return nil
		}
		if len(monthly) == maxSold {
			return feed.TooManyItems(maxSold)
		}
		monthly[key] = max(own, 0) + max(steam, 0)
		return nil
	}
	err := feed.Read(ctx, Name, body, nil, func(r *feed.Reader) error {
		seen := false
		err := r.Object(func(member []byte) error {
			if string(member) != "data" {
				return r.Skip()
			}
			return r.Object(func(member []byte) error {
				if string(member) != "items" {
					return r.Skip()
				}
				seen = true
				return r.Rows(func() error { return row(r) })
			})
		})
		if err == nil && !seen {
			err = feed.Malformed("response without items")
		}
		return err
	})
	return monthly, err
}
