package user_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/fault"
	"assay/internal/user"
)

func TestPut_StoresAUser(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		a, b := ensure(f, "A"), ensure(f, "a")
		f.Is("key of the same user", ensure(f, "A"), a)
		f.Is("keys of ids that differ only in case", a != b, true)
		got, ok, err := user.Key(f.Context(), f.DB, "A")
		f.Must(err)
		f.Is("key of the stored user", got, a)
		f.Is("the stored user is known", ok, true)
		_, ok, err = user.Key(f.Context(), f.DB, "unknown")
		f.Must(err)
		f.Is("the unknown id is known", ok, false)
		for _, u := range []user.User{
			{ID: "A", SteamID: "76561198000000000", DisplayName: "Ä ★", Leaderboard: false},
			{ID: "A", Leaderboard: true},
			{ID: "new", DisplayName: "N"},
		} {
			f.Tx(func(tx *db.Tx) error { return user.Put(tx, u) })
			got, err := user.Read(f.Context(), f.DB, u.ID)
			f.Must(err)
			f.Is("stored user", got, u)
		}
		for _, u := range []struct {
			id   string
			want bool
		}{{"A", true}, {"new", false}, {"newer", true}} {
			f.Tx(func(tx *db.Tx) error {
				return user.Put(tx, user.User{ID: u.id, Leaderboard: true, KeepLeaderboard: true})
			})
			got, err := user.Read(f.Context(), f.DB, u.id)
			f.Must(err)
			f.Is("kept leaderboard of "+u.id, got.Leaderboard, u.want)
		}
		f.Is("key after Put", ensure(f, "A"), a)
	})
}

const someSteamID = "76561198000000001"

// taken reports whether err means that another user has the Steam id.
func taken(err error) bool {
	fail := fault.Of(err)
	return fail != nil && fail.Kind == fault.Conflict && fail.Code == "steam_id_taken"
}

func TestPut_RefusesTheSteamIDOfAnotherUser(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		for _, put := range []struct {
			user, steamID string
			taken         bool
		}{
			{"a", someSteamID, false},
			{"a", someSteamID, false}, // the user's own Steam id
			{"b", someSteamID, true},  // an existing Steam id for a new user
			{"b", "", false},
			{"c", "", false}, // without a Steam id
			{"b", someSteamID, true},
			{"a", "", false},
			{"b", someSteamID, false},
			{"a", someSteamID, true},
		} {
			if err := putUser(f, put.user, put.steamID); taken(err) != put.taken || err != nil && !put.taken {
				f.Errorf("user %s with Steam id %q: got error %v, want taken %v", put.user, put.steamID, err, put.taken)
			}
		}
		u, err := user.Read(f.Context(), f.DB, "a")
		f.Must(err)
		f.Is("Steam id after refused changes", u.SteamID, "")
	})
}

// Database collations sort some of these ids differently from their bytes.
func TestList_SelectsByPrefix(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		for _, id := range []string{"b", "a", "A", "a b", "a-b", "aB", "ab", "aé", "a\U0010FFFF", "ä", "_a"} {
			f.Must(putUser(f, id, ""))
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
			users, err := user.List(f.Context(), f.DB, c.prefix, c.after, c.limit)
			f.Must(err)
			var got []string
			for _, u := range users {
				got = append(got, u.ID)
			}
			f.Is(fmt.Sprintf("users with prefix %q after %q", c.prefix, c.after), fmt.Sprintf("%q", got), fmt.Sprintf("%q", c.want))
		}
	})
}

func TestPut_GivesASteamIDToOneOfManyConcurrentUsers(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		var got atomic.Int64
		dbtest.AtOnce(16, func(i int) {
			switch err := putUser(f, fmt.Sprint("user ", i), someSteamID); {
			case err == nil:
				got.Add(1)
			case !taken(err):
				f.Error(err)
			}
		})
		f.Is("users with the Steam id", got.Load(), int64(1))
	})
}

func TestEnsure_CreatesAUserOnceInConcurrentCalls(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		var mu sync.Mutex
		keys := map[int64]bool{}
		dbtest.AtOnce(16, func(int) {
			f.Try(func(tx *db.Tx) error {
				key, err := user.Ensure(tx, "u")
				mu.Lock()
				defer mu.Unlock()
				keys[key] = true
				return err
			})
		})
		f.Is("number of keys", len(keys), 1)
	})
}

// ensure returns the key of a user and creates the user if needed.
func ensure(f *dbtest.Fixture, id string) (key int64) {
	f.Helper()
	f.Tx(func(tx *db.Tx) (err error) {
		key, err = user.Ensure(tx, id)
		return err
	})
	return key
}

func putUser(f *dbtest.Fixture, id, steamID string) error {
	return f.DB.InTx(f.Context(), func(tx *db.Tx) error { return user.Put(tx, user.User{ID: id, SteamID: steamID}) })
}
