package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
)

// released is a directory of backups. Each released version made a backup of a small database on
// each engine. The backups never change, because migrations of a released version are frozen.
const released = "testdata/released"

// recordedState is what a released version reported about its database.
type recordedState struct {
	Item      string      `json:"item"`
	Price     json.Number `json:"price"` // of the item
	Inventory int         `json:"inventory"`
	Balance   int64       `json:"balance"`
}

const recordedUser = "seller"

// state reads the same data from a running server.
func (s *server) state(item string) (state recordedState) {
	s.t.Helper()
	var price struct{ CurrentPrice json.Number }
	s.get("/api/prices/items/-?name="+url.QueryEscape(item), &price)
	var inventory struct{ Rows int }
	s.get("/api/inventory/"+recordedUser, &inventory)
	var wallet struct{ Accounts []struct{ Balance int64 } }
	s.get(ledgerPath+recordedUser+"/balance", &wallet)
	if len(wallet.Accounts) != 1 {
		s.t.Fatalf("got %d accounts, want 1", len(wallet.Accounts))
	}
	return recordedState{Item: item, Price: price.CurrentPrice, Inventory: inventory.Rows, Balance: wallet.Accounts[0].Balance}
}

// recordRelease fills a database of this build with prices, an inventory and a ledger, and
// writes its backup and its state to a directory.
func recordRelease(t *testing.T, on engine, dir string) {
	t.Helper()
	markets, base := simulator(t, sim.Options{Names: 20, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+base, "WALLET_LEDGER_KEY="+given["WALLET_LEDGER_KEY"])
	s.start()
	items := make([]asset, 0, 20)
	for i, name := range markets.Names() {
		items = append(items, asset{AssetID: fmt.Sprint(i), MarketHashName: name})
	}
	s.push(recordedUser, 730, items)
	s.awaitPriced()
	d := deposited{user: recordedUser, key: "released", body: `{"kind":"deposit","currency":"USD","amount":700}`}
	if status, body, err := d.send(s); err != nil || status != http.StatusCreated {
		t.Fatalf("deposit: got %d %s, %v, want 201", status, body, err)
	}
	state, err := json.Marshal(s.state(items[0].MarketHashName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, string(on)+".json"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	s.command(0, "backup", filepath.Join(dir, string(on)+".backup"))
}

// TestRelease_UpgradesTheDatabaseOfEveryVersion restores the backup of each released version and
// starts this build on it. Before the first release there is only the backup of this build.
// `ASSAY_RECORD=0.1.0 go test ./e2e -run TestRelease` adds the backups of a new version.
func TestRelease_UpgradesTheDatabaseOfEveryVersion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		if version := os.Getenv("ASSAY_RECORD"); version != "" {
			dir := filepath.Join(released, version)
			if err := os.MkdirAll(dir, 0o750); err != nil {
				t.Fatal(err)
			}
			recordRelease(t, on, dir)
		}
		current := t.TempDir()
		recordRelease(t, on, current)
		for _, dir := range append(releasedVersions(t), current) {
			text, err := os.ReadFile(filepath.Join(dir, string(on)+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var want recordedState
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			key := "WALLET_LEDGER_KEY=" + given["WALLET_LEDGER_KEY"]
			s := newServer(t, key)
			if on == onPostgres {
				s = newServerOn(t, pgtest.Shared(t).NewDatabase(t), key)
			}
			s.command(0, "restore", filepath.Join(dir, string(on)+".backup"))
			s.start()
			if have := s.state(want.Item); have != want || have.Price == "0" || have.Inventory != 20 || have.Balance == 0 {
				t.Errorf("%s on %s: got %+v, want %+v", dir, on, have, want)
			}
			s.verified()
		}
	})
}

// releasedVersions returns the directories of all released versions. They must match the versions
// in the changelog.
func releasedVersions(t *testing.T) (dirs []string) {
	t.Helper()
	changelog, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^## \[(\d.*?)\]`).FindAllStringSubmatch(string(changelog), -1) {
		dirs = append(dirs, filepath.Join(released, m[1]))
	}
	have, err := filepath.Glob(released + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range have {
		if !slices.Contains(dirs, dir) {
			t.Errorf("got the directory %s, want one per released version of CHANGELOG.md", dir)
		}
	}
	return dirs
}
