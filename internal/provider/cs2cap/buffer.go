package cs2cap

import "assay/internal/provider"

// rowBuffer is a sink that holds the rows of all pages until the last page is read.
type rowBuffer struct {
	quotes  []provider.Quote
	rejects []reject
}

// maxRejects is larger than the number of quotes on a page. A page with more rejects than
// quotes is invalid.
const maxRejects = 64 * 9

type reject struct{ market, name, reason string }

func (b *rowBuffer) Restart() { b.quotes, b.rejects = nil, nil }

func (b *rowBuffer) Quote(q *provider.Quote) error {
	b.quotes = append(b.quotes, *q)
	return nil
}

func (b *rowBuffer) Reject(market, name, reason string) {
	if len(b.rejects) < maxRejects {
		b.rejects = append(b.rejects, reject{market, name, reason})
	}
}

// add appends the rows of another page. A row may move to the next page between two requests.
// It is added only once.
func (b *rowBuffer) add(page *rowBuffer) {
	b.rejects = append(b.rejects, page.rejects...)
	before := b.quotes
	for _, q := range page.quotes {
		if !contains(before, &q) {
			b.quotes = append(b.quotes, q)
		}
	}
}

func contains(quotes []provider.Quote, q *provider.Quote) bool {
	for i := range quotes {
		if quotes[i].Market == q.Market && quotes[i].Name == q.Name && quotes[i].Phase == q.Phase {
			return true
		}
	}
	return false
}

// flush passes all rows to a sink.
func (b *rowBuffer) flush(sink provider.Sink) error {
	sink.Restart()
	for _, r := range b.rejects {
		sink.Reject(r.market, r.name, r.reason)
	}
	for i := range b.quotes {
		if err := sink.Quote(&b.quotes[i]); err != nil {
			return err
		}
	}
	return nil
}
