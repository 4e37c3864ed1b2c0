package steaminv

import (
	"context"
	"math"
	"net/url"
	"strconv"
	"time"

	"assay/internal/inventory"
	"assay/internal/provider"
)

// Puller reads inventories from Steam. Its methods are safe for concurrent use.
type Puller struct {
	BaseURL string           // base URL of Steam without a trailing slash
	Client  *provider.Client // client with the options of Tune
	Now     func() time.Time
}

// Held returns the remaining wait that Steam demands, or 0 if requests are allowed.
func (p *Puller) Held() time.Duration {
	if until := p.Client.BlockedUntil(); !until.IsZero() {
		return max(0, until.Sub(p.Now()))
	}
	return 0
}

// Pull reads all pages of an inventory. It returns an error if the inventory is incomplete;
// see explain for the errors that are faults.
//
// The count in Steam's response includes hidden assets. If there are fewer assets than that
// after the last page, the rest are hidden, and Push.Hidden has their number.
//
// The push has the time of the request for the first page. Later changes to the inventory
// may be missing.
func (p *Puller) Pull(ctx context.Context, steamID string, place Place) (inventory.Push, error) {
	w := walk{Puller: p, steamID: steamID, place: place, count: firstCount, seen: map[string]struct{}{}}
	w.AppID, w.ContextID = place.AppID, place.ContextID
	w.meter = provider.NewMeter(0, func(context.Context) (int64, error) {
		w.SnapshotAt = p.Now()
		return math.MaxInt64, nil
	})
	for start := ""; ; {
		next, err := w.page(ctx, start)
		if err != nil {
			return inventory.Push{}, explain(err)
		}
		if err := w.add(next); err != nil {
			return inventory.Push{}, explain(err)
		}
		if !next.more {
			break
		}
		start = next.last
	}
	w.Hidden = w.total - int64(len(w.seen))
	return w.Push, nil
}

// walk is a running pull.
type walk struct {
	*Puller
	inventory.Push
	steamID string
	place   Place
	count   int                 // number of assets to request per page
	total   int64               // number of assets according to Steam
	seen    map[string]struct{} // ids of the received assets
	meter   *provider.Meter
}

// page fetches the page after the asset start, or the first page if start is empty.
func (w *walk) page(ctx context.Context, start string) (*page, error) {
	for {
		p, err := w.fetchPage(ctx, start)
		if w.count == lessCount || !tooMany(err) {
			return p, err
		}
		w.count = lessCount
	}
}

func (w *walk) fetchPage(ctx context.Context, start string) (p *page, err error) {
	q := url.Values{"l": {"english"}, "count": {strconv.Itoa(w.count)}}
	if start != "" {
		q.Set("start_assetid", start)
	}
	req := provider.Request{
		URL: w.BaseURL + "/inventory/" + w.steamID + "/" + strconv.Itoa(int(w.place.AppID)) + "/" + w.place.ContextID + "?" + q.Encode(),
		Header: map[string][]string{
			"Accept": {"application/json"}, "Referer": {w.BaseURL + "/profiles/" + w.steamID + "/inventory"},
		},
		Meter: w.meter,
	}
	err = w.Client.Do(ctx, req, func(resp *provider.Response) (err error) {
		p, err = readPage(ctx, resp.Body, w.steamID, w.place)
		return err
	})
	return p, err
}

// add adds the assets of a page to the push. A page may repeat assets. A page with only
// repeated assets and another page after it is an error, because the pull might not end.
func (w *walk) add(p *page) error {
	first := len(w.seen) == 0
	switch {
	case p.total > inventory.MaxItems:
		return errTooLarge
	case first && len(p.assets) == 0 && p.total > 0:
		return errHidden
	case !first && p.total != w.total:
		return provider.Protocol(providerName, "the inventory changed during the pull: got %d assets in total, then %d", w.total, p.total)
	}
	w.total = p.total
	before := len(w.seen)
	for _, a := range p.assets {
		if _, again := w.seen[a.AssetID]; again {
			continue
		}
		w.seen[a.AssetID] = struct{}{}
		w.Assets = append(w.Assets, a)
	}
	missing := w.total - int64(len(w.seen))
	switch {
	case missing < 0:
		return provider.Protocol(providerName, "the inventory changed during the pull: got %d assets of %d", len(w.seen), w.total)
	case p.more && len(w.seen) == before:
		return provider.Protocol(providerName, "a page without new assets is not the last page")
	case !p.more && missing > 0 && len(p.assets) >= w.count:
		return provider.Protocol(providerName, "the last page is full, but %d assets are missing", missing)
	}
	return nil
}
