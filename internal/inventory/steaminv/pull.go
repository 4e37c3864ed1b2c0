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

// Puller reads inventories from Steam. Its methods may be used concurrently.
type Puller struct {
	BaseURL string           // without a slash at its end
	Client  *provider.Client // see Tune
	Now     func() time.Time
}

// Held returns for how long Steam wants to be left alone, as far as is known; 0: it
// does not.
func (p *Puller) Held() time.Duration {
	if until := p.Client.BlockedUntil(); !until.IsZero() {
		return max(0, until.Sub(p.Now()))
	}
	return 0
}

// Pull reads a whole inventory, page after page. Whatever keeps it from being
// whole is an error: see explain for those that are faults.
// Steam counts what it hides as well, so that fewer assets than it counts are whole
// on the last page: the push counts the hidden ones.
//
// The push is as of the request for the first page: what the user did since
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

// walk is a pull under way.
type walk struct {
	*Puller
	inventory.Push
	steamID string
	place   Place
	count   int
	total   int64
	seen    map[string]struct{} // assets that came
	meter   *provider.Meter
}

// page asks for the page that follows an asset; "": for the first.
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

// add takes the assets of a page. One that repeats assets is no harm; one that
// brings nothing else would never end.
func (w *walk) add(p *page) error {
	first := len(w.seen) == 0
	switch {
	case p.total > inventory.MaxItems:
		return errTooLarge
	case first && len(p.assets) == 0 && p.total > 0:
		return errHidden
	case !first && p.total != w.total:
		return provider.Protocol(providerName, "the inventory changed while it was read: %d assets and then %d", w.total, p.total)
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
		return provider.Protocol(providerName, "got %d of %d assets: the inventory changed during the pull", len(w.seen), w.total)
	case p.more && len(w.seen) == before:
		return provider.Protocol(providerName, "a page that brings nothing new has another one after it")
	case !p.more && missing > 0 && len(p.assets) >= w.count:
		return provider.Protocol(providerName, "a full page has none after it, and %d assets are missing", missing)
	}
	return nil
}
