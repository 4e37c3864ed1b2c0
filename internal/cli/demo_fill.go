package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"assay/internal/catalog"
	"assay/internal/view"
)

// Size of the demo.
const (
	demoUsers = 25
	// demoShared is the number of names that every user owns. A new price of such a name
	// updates rows of all users.
	demoShared = 400
)

// demoPush is an inventory in the format of the API.
type demoPush struct {
	AppID      int32       `json:"appId"`
	ContextID  string      `json:"contextId"`
	SnapshotAt time.Time   `json:"snapshotAt"`
	Items      []demoAsset `json:"items"`
}

type demoAsset struct {
	AssetID        string `json:"assetId"`
	MarketHashName string `json:"marketHashName"`
	ClassID        string `json:"classId"`
	InstanceID     string `json:"instanceId"`
	Amount         int64  `json:"amount"`
	Tradable       bool   `json:"tradable"`
}

// demoUser returns the n-th user, starting at 0.
func demoUser(n int) (id string, user userBody) {
	names := [...]string{
		"Ada", "Bo", "Cleo", "Dag", "Edda", "Finn", "Gro", "Hal", "Ida", "Jon", "Kaja", "Leif", "Mia",
		"Nils", "Ola", "Pia", "Quist", "Runa", "Siv", "Tor", "Unn", "Vera", "Wim", "Yrsa", "Zoe",
	}
	return fmt.Sprintf("demo-%02d", n+1), userBody{DisplayName: names[n%len(names)], Leaderboard: true}
}

// demoAssets returns the assets of the n-th user: part of all names, and the names that all
// users own. It is deterministic, so a second push changes nothing.
func demoAssets(names []string, n, users int) []demoAsset {
	assets := make([]demoAsset, 0, demoShared+len(names)/users+1)
	add := func(i int) {
		asset := demoAsset{
			AssetID:        strconv.Itoa((n+1)*1_000_000 + i),
			MarketHashName: names[i],
			ClassID:        strconv.Itoa(10_000 + i),
			InstanceID:     "0",
			Amount:         1,
			Tradable:       i%7 != 0,
		}
		if i%11 == 0 {
			asset.Amount = int64(2 + (i+n)%9)
		}
		assets = append(assets, asset)
	}
	for i := range min(demoShared, len(names)) {
		add(i)
	}
	for i := demoShared + n; i < len(names); i += users {
		add(i)
	}
	return assets
}

// fillDemo creates the users and pushes their inventories with the API, like a platform. It
// writes the result to w.
func fillDemo(ctx context.Context, api *client, names []string, now func() time.Time, w io.Writer) error {
	var rows, queued int64
	for n := range demoUsers {
		id, user := demoUser(n)
		r := userRequest(http.MethodPut, id)
		r.body = user
		if err := api.do(ctx, r, nil); err != nil {
			return err
		}
		assets := demoAssets(names, n, demoUsers)
		push := demoPush{AppID: catalog.CS2, ContextID: "2", SnapshotAt: now().UTC(), Items: assets}
		done, err := call[view.SyncResult](ctx, api, syncRequest(id, push))
		if err != nil {
			return err
		}
		rows += int64(len(assets))
		queued += done.QueuedNames
	}
	_, err := fmt.Fprintf(w, "%d users own %s assets with %s names; %s names had no price yet and were queued\n",
		demoUsers, count(rows), count(int64(len(names))), count(queued))
	return err
}
