package refresh

import (
	"cmp"
	"context"
	"slices"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
)

// Comparison compares a market's refused response with the last valid one. Both are files of the
// market, with prices in the base currency.
type Comparison struct {
	Before int64       `json:"before"` // names with a price in the last valid response; 0: there is none
	After  int64       `json:"after"`  // names with a price in the refused response
	Shared int64       `json:"shared"` // names with a price in both
	Median money.Micro `json:"median"` // median factor of the prices of shared names, in millionths; 0: no name is shared
	Moved  []Moved     `json:"moved"`  // see movedShown
}

// Moved is a name with a different price in a refused response.
type Moved struct {
	Name   string      `json:"name"`
	Phase  string      `json:"phase"`
	Before money.Micro `json:"before"`
	After  money.Micro `json:"after"` // 0: the refused response has no price
}

// movedShown is the maximum number of names in Comparison.Moved. The names with the largest moves
// come first, then the most expensive names without a price in the refused response.
const movedShown = 10

// compare orders names by their move. Names without a price in the refused response come last.
func (m *Moved) compare(o *Moved) int {
	if (m.After == 0) != (o.After == 0) {
		return cmp.Compare(o.After, m.After)
	}
	order := cmp.Compare(o.Before, m.Before)
	if m.After > 0 {
		order = cmp.Compare(o.distance(), m.distance())
	}
	return cmp.Or(order, cmp.Compare(m.Name, o.Name), cmp.Compare(m.Phase, o.Phase))
}

func (m *Moved) distance() pricing.Log {
	d := pricing.Ln(m.After) - pricing.Ln(m.Before)
	return max(d, -d)
}

// describe compares the refused responses of the game with the last valid ones.
func (g *game) describe(ctx context.Context) error {
	for _, p := range g.parts {
		if p.Unit.AppID != g.app || p.Quarantine == "" || p.Reused {
			continue
		}
		refused, err := g.compare(ctx, p)
		if err != nil {
			return err
		}
		p.Refused = refused
	}
	return nil
}

// compare reads both responses of a market bucket by bucket, so its memory use is small.
func (g *game) compare(ctx context.Context, p *marketInFile) (*Comparison, error) {
	dec := newDecoder()
	defer dec.close()
	out := &Comparison{}
	var factors []money.Micro
	buckets := make([]int64, 1)
	for buckets[0] = range int64(catalog.Buckets) {
		before, after := map[catalog.Key]money.Micro{}, map[catalog.Key]money.Micro{}
		err := g.fetcher.readBlobs(ctx, []int64{p.base.UnitID, p.Unit.ResponseUnitID}, buckets, func(b Blob) error {
			return g.fetcher.decode(dec, b, func(q *quoteRecord) {
				price := g.convert.price(q)
				switch {
				case q.Market != p.Fetch.MarketID || price <= 0:
				case b.Unit == p.Unit.ResponseUnitID:
					after[catalog.Key{Name: string(q.Name), Phase: q.Phase}] = price
				default:
					before[catalog.Key{Name: string(q.Name), Phase: q.Phase}] = price
				}
			})
		})
		if err != nil {
			return nil, err
		}
		out.Before, out.After = out.Before+int64(len(before)), out.After+int64(len(after))
		for key, was := range before {
			is := after[key]
			if factor, ok := money.Ratio(is, was); ok && is > 0 {
				factors = append(factors, factor)
			}
			if is != was {
				out.add(&Moved{key.Name, key.Phase, was, is})
			}
		}
	}
	if out.Shared = int64(len(factors)); out.Shared > 0 {
		slices.Sort(factors)
		out.Median = factors[len(factors)/2]
	}
	return out, nil
}

// add adds a name to Moved, unless movedShown names precede it.
func (r *Comparison) add(m *Moved) {
	at, _ := slices.BinarySearchFunc(r.Moved, m, func(a Moved, b *Moved) int { return a.compare(b) })
	if at < movedShown {
		r.Moved = slices.Insert(r.Moved, at, *m)
		r.Moved = r.Moved[:min(len(r.Moved), movedShown)]
	}
}
