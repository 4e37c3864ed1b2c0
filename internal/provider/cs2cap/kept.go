package cs2cap

import "assay/internal/provider"

// kept is a sink that holds the rows of a few pages until all pages are read.
type kept struct {
	quotes  []provider.Quote
	rejects []reject
}

// maxRejects exceeds the number of quotes that a page can have. A page with more rejects
// than quotes is invalid.
const maxRejects = 64 * 9

type reject struct{ market, name, reason string }

func (k *kept) Restart() { k.quotes, k.rejects = nil, nil }

func (k *kept) Quote(q *provider.Quote) error {
	k.quotes = append(k.quotes, *q)
	return nil
}

func (k *kept) Reject(market, name, reason string) {
	if len(k.rejects) < maxRejects {
		k.rejects = append(k.rejects, reject{market, name, reason})
	}
}

// add appends the rows of another page. A row that moved to the next page between the
// requests counts once.
func (k *kept) add(page *kept) {
	k.rejects = append(k.rejects, page.rejects...)
	before := k.quotes
	for _, q := range page.quotes {
		if !contains(before, &q) {
			k.quotes = append(k.quotes, q)
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

// hand passes all rows to a sink.
func (k *kept) hand(sink provider.Sink) error {
	sink.Restart()
	for _, r := range k.rejects {
		sink.Reject(r.market, r.name, r.reason)
	}
	for i := range k.quotes {
		if err := sink.Quote(&k.quotes[i]); err != nil {
			return err
		}
	}
	return nil
}
