package storetest

import (
	"fmt"
	"sync/atomic"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/store"
)

const someSteamID = "76561198000000001"

func taken(err error) bool {
	fail := fault.Of(err)
	return fail != nil && fail.Kind == fault.Conflict && fail.Code == "steam_id_taken"
}

func (f *fixture) putUser(id, steamID string) error {
	return f.s.InTx(f.Context(), func(tx *store.Tx) error { return tx.PutUser(inventory.User{ID: id, SteamID: steamID}) })
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
	u, err := f.s.User(f.Context(), "a")
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
		users, err := f.s.Users(f.Context(), c.prefix, c.after, c.limit)
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
