package storetest

import (
	"fmt"
	"sync/atomic"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/user"
	"assay/internal/view"
)

const someSteamID = "76561198000000001"

func taken(err error) bool {
	fail := fault.Of(err)
	return fail != nil && fail.Kind == fault.Conflict && fail.Code == "steam_id_taken"
}

func (f *fixture) putUser(id, steamID string) error {
	return f.s.InTx(f.Context(), func(tx *db.Tx) error { return user.Put(tx, user.User{ID: id, SteamID: steamID}) })
}

func steamIDs(f *fixture) {
	for _, put := range []struct {
		user, steamID string
		taken         bool
	}{
		{"a", someSteamID, false},
		{"a", someSteamID, false}, // his own
		{"b", someSteamID, true},  // who is new
		{"b", "", false},
		{"c", "", false}, // nobody's
		{"b", someSteamID, true},
		{"a", "", false},
		{"b", someSteamID, false},
		{"a", someSteamID, true},
	} {
		if err := f.putUser(put.user, put.steamID); taken(err) != put.taken || err != nil && !put.taken {
			f.Errorf("%s has %q: %v", put.user, put.steamID, err)
		}
	}
	u, err := user.Read(f.Context(), f.s, "a")
	f.must(err)
	f.is("who was refused", u.SteamID, "")
}

// usersByPrefix has ids that databases order in other ways than by their bytes.
func usersByPrefix(f *fixture) {
	for _, id := range []string{"b", "a", "A", "a b", "a-b", "aB", "ab", "aé", "a\U0010FFFF", "ä", "_a"} {
		f.must(f.putUser(id, ""))
	}
	for _, c := range []struct {
		prefix, after string
		limit         int
		want          []string
	}{
		{"a", "", 100, []string{"a", "a b", "a-b", "aB", "ab", "aé", "a\U0010FFFF"}},
		{"a", "a-b", 2, []string{"aB", "ab"}},
		{"", "a\U0010FFFF", 100, []string{"b", "ä"}},
		{"", "", 2, []string{"A", "_a"}},
		{"a%", "", 100, nil},
	} {
		users, err := user.List(f.Context(), f.s, c.prefix, c.after, c.limit)
		f.must(err)
		var got []string
		for _, u := range users {
			got = append(got, u.ID)
		}
		f.is(fmt.Sprintf("users that begin with %q after %q", c.prefix, c.after), fmt.Sprintf("%q", got), fmt.Sprintf("%q", c.want))
	}
}

func steamIDsRace(f *fixture) {
	var got atomic.Int64
	atOnce(16, func(i int) {
		switch err := f.putUser(fmt.Sprint("user ", i), someSteamID); {
		case err == nil:
			got.Add(1)
		case !taken(err):
			f.Error(err)
		}
	})
	f.is("users who have it", got.Load(), int64(1))
}

func usersAreDeleted(f *fixture) {
	hold := func(id string) (u user.Held) {
		f.tx(func(tx *db.Tx) (err error) {
			u, err = user.Hold(tx, id)
			return err
		})
		return u
	}
	known := func(id string) bool {
		_, ok, err := user.Key(f.Context(), f.s, id)
		f.must(err)
		_, err = user.Read(f.Context(), f.s, id)
		if ok != (err == nil) || !ok && fault.Of(err) == nil {
			f.Errorf("%s: known %v, %v", id, ok, err)
		}
		f.is(id+" is held as known", hold(id).Known(), ok)
		return ok
	}
	put := func(u user.User) error {
		return f.s.InTx(f.Context(), func(tx *db.Tx) error { return user.Put(tx, u) })
	}
	deleted := func(id string) {
		f.tx(func(tx *db.Tx) error {
			u, err := user.Hold(tx, id)
			if err != nil {
				return err
			}
			return market.DeleteUser(tx, u.Key)
		})
	}

	items := f.items("A", "B")
	a, b := f.own("a", items...), f.own("b", items...)
	f.must(put(user.User{ID: "a", SteamID: someSteamID, DisplayName: "Ada", Leaderboard: true}))
	f.tx(func(tx *db.Tx) error {
		if err := inventory.SetInventoryAsOf(tx, a, app, "2", 5); err != nil {
			return err
		}
		return inventory.PutUninspected(tx, a, app, "2", []inventory.Due{{AssetID: assetID(0), State: inventory.InspectPending}})
	})
	f.is("a is known", known("a"), true)
	f.is("nobody is held", hold("nobody"), user.Held{})
	f.is("a is held", hold("a"), user.Held{Key: a, SteamID: someSteamID})

	deleted("a")
	f.is("a is known after the deletion", known("a"), false)
	f.is("a is held after the deletion", hold("a"), user.Held{Key: a, Deleted: true})
	f.is("b is known", known("b"), true)
	users, err := user.List(f.Context(), f.s, "", "", 10)
	f.must(err)
	f.is("users that are listed", len(users), 1)
	total, err := view.ReadInventoryTotal(f.Context(), f.s, b, 0)
	f.must(err)
	f.is("rows of b", total.Rows, int64(2))
	f.must(f.putUser("b", someSteamID)) // it is free again

	// Each way to create a user creates a deleted one anew, under the same key.
	for _, again := range []func() error{
		func() error { f.own("a"); return nil },
		func() error { return put(user.User{ID: "a", Leaderboard: true, KeepLeaderboard: true}) },
	} {
		f.must(again())
		u, err := user.Read(f.Context(), f.s, "a")
		f.must(err)
		f.is("a anew", u, user.User{ID: "a", Leaderboard: true})
		f.is("key of a anew", hold("a").Key, a)
		total, err := view.ReadInventoryTotal(f.Context(), f.s, a, 0)
		f.must(err)
		f.is("rows of a anew", total.Rows, int64(0))
		f.tx(func(tx *db.Tx) error {
			at, err := inventory.InventoryAsOf(tx, a, app, "2")
			f.is("inventory of a anew is of", at, int64(0))
			if err != nil {
				return err
			}
			due, err := inventory.ClaimUninspected(tx, 10)
			f.is("rows of a to inspect", len(due), 0)
			return err
		})
		deleted("a")
	}
	f.must(put(user.User{ID: "a", Leaderboard: false}))
	u, err := user.Read(f.Context(), f.s, "a")
	f.must(err)
	f.is("a anew and opted out", u, user.User{ID: "a"})
}
