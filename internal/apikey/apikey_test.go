package apikey

import (
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/fault"
)

// code returns the code of a fault, or an empty string.
func code(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

func TestKey_WritingIncludesReading(t *testing.T) {
	k := Key{Scopes: []string{"wallet:write", "prices:read"}}
	for scope, want := range map[string]bool{
		"wallet:write": true, "wallet:read": true, "prices:read": true, "prices:write": false, "market:read": false, "wallet": false, "": false,
	} {
		if got := k.Allows(scope); got != want {
			t.Errorf("Allows(%q) = %v, want %v", scope, got, want)
		}
	}
}

func TestService_FindsKeysByTheirSecrets(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		found := func(secret string) string {
			k, err := s.Find(f.Context(), secret)
			f.Must(err)
			if k == nil {
				return ""
			}
			return k.Name
		}
		f.Is("key of an empty table", found("assay_x"), "")
		_, billing, err := s.Create(f.Context(), nil, Key{Name: "billing", Scopes: []string{"wallet:write", "prices:read"}, PerMinute: 7})
		f.Must(err)
		_, brief, err := s.Create(f.Context(), nil, Key{Name: "brief", Scopes: []string{"prices:read"}, ExpiresAt: f.Now.Add(time.Hour)})
		f.Must(err)
		f.Is("the secret begins with the prefix", strings.HasPrefix(billing, Prefix), true)
		f.Is("length of the secret", len(billing), len(Prefix)+26)
		f.Is("key of the first secret", found(billing), "billing")
		f.Is("key of the second secret", found(brief), "brief")
		f.Is("key of a prefix of a secret", found(billing[:20]), "")
		f.Is("key of the empty secret", found(""), "")
		k, err := Get(f.Context(), f.DB, "billing")
		f.Must(err)
		f.Is("stored scopes", strings.Join(k.Scopes, ","), "wallet:write,prices:read")
		f.Is("stored limit", k.PerMinute, 7)
		_, _, err = s.Create(f.Context(), nil, Key{Name: "billing", Scopes: []string{"prices:read"}})
		f.Is("error for a used name", code(err), "key_exists")
		_, _, err = s.Create(f.Context(), nil, Key{Name: "late", Scopes: []string{"prices:read"}, ExpiresAt: f.Now})
		f.Is("error for an expiry that is not in the future", code(err), "invalid_body")

		f.Now = f.Now.Add(time.Hour)
		f.Is("key of an expired secret", found(brief), "")

		_, next, err := s.Rotate(f.Context(), nil, "billing", time.Hour)
		f.Must(err)
		f.Is("key of the new secret", found(next), "billing")
		f.Is("key of the old secret", found(billing), "billing")
		_, last, err := s.Rotate(f.Context(), nil, "billing", time.Hour)
		f.Must(err)
		f.Is("key of the oldest secret after two rotations", found(billing), "")
		f.Is("key of the old secret after two rotations", found(next), "billing")
		f.Now = f.Now.Add(time.Hour)
		f.Is("key of the old secret after its end", found(next), "")
		f.Is("key of the newest secret", found(last), "billing")

		keys, err := List(f.Context(), f.DB, "", 9)
		f.Must(err)
		names := make([]string, 0, len(keys))
		for i := range keys {
			names = append(names, keys[i].Name)
		}
		f.Is("names", strings.Join(names, ","), "billing,brief")
		f.Must(s.Revoke(f.Context(), nil, "billing"))
		f.Is("key of a revoked secret", found(last), "")
		f.Is("error of a second Revoke", code(s.Revoke(f.Context(), nil, "billing")), "key_not_found")
		_, _, err = s.Rotate(f.Context(), nil, "billing", 0)
		f.Is("error of Rotate of a revoked key", code(err), "key_not_found")
	})
}

// A key may manage only keys that can do at most what it can do itself. A refused request changes nothing.
func TestService_AKeyManagesOnlyKeysWithinItsOwnLimits(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		end := f.Now.Add(time.Hour)
		by := Key{Name: "by", Scopes: []string{"operate:write", "prices:read"}, PerMinute: 60, ExpiresAt: end}
		free := Key{Name: "free", Scopes: []string{"operate:write", "prices:read"}}
		for name, c := range map[string]struct {
			scopes    []string
			perMinute int
			expires   time.Time
			by, free  string // codes of the errors of the two keys
		}{
			"same":              {[]string{"operate:write", "prices:read"}, 60, end, "", ""},
			"less":              {[]string{"operate:read"}, 1, end.Add(-time.Minute), "", ""},
			"another-area":      {[]string{"operate:read", "market:read"}, 60, end, "forbidden", "forbidden"},
			"write-of-a-reader": {[]string{"prices:write"}, 60, end, "forbidden", "forbidden"},
			"later":             {[]string{"operate:read"}, 60, end.Add(time.Microsecond), "forbidden", ""},
			"endless":           {[]string{"operate:read"}, 60, time.Time{}, "forbidden", ""},
			"faster":            {[]string{"operate:read"}, 61, end, "forbidden", ""},
			"unlimited":         {[]string{"operate:read"}, 0, end, "forbidden", ""},
		} {
			for _, manager := range []struct {
				key  *Key
				want string
			}{{&by, c.by}, {&free, c.free}} {
				label := name + " by " + manager.key.Name
				k := Key{Name: "made", Scopes: c.scopes, PerMinute: c.perMinute, ExpiresAt: c.expires}
				_, secret, err := s.Create(f.Context(), manager.key, k)
				f.Is(label+": error of Create", code(err), manager.want)
				if err != nil {
					_, secret, err = s.Create(f.Context(), nil, k)
					f.Must(err)
				}
				_, _, err = s.Rotate(f.Context(), manager.key, "made", 0)
				f.Is(label+": error of Rotate", code(err), manager.want)
				found, err := s.Find(f.Context(), secret)
				f.Must(err)
				f.Is(label+": the first secret is valid after Rotate", found != nil, manager.want != "")
				err = s.Revoke(f.Context(), manager.key, "made")
				f.Is(label+": error of Revoke", code(err), manager.want)
				if err != nil {
					f.Must(s.Revoke(f.Context(), nil, "made"))
				}
			}
		}
	})
}

func TestService_StoresNoSecret(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		s := &Service{DB: f.DB}
		_, secret, err := s.Create(f.Context(), nil, Key{Name: "billing", Scopes: []string{"wallet:write"}})
		f.Must(err)
		var row string
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT name || ' ' || scopes || ' ' || secret || ' ' || old_secret FROM api_key`).Scan(&row))
		f.Is("stored row", row, "billing wallet:write "+hash(secret)+" ")
		f.Is("the row contains the secret", strings.Contains(row, secret[len(Prefix):]), false)
	})
}

func TestSpend_RenewsTheLimitEachMinute(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Now = f.Now.Truncate(time.Minute).Add(20 * time.Second)
		s, k := &Service{DB: f.DB}, &Key{Name: "a", PerMinute: 2}
		type result struct {
			left   int
			renews time.Duration
			ok     bool
		}
		spend := func(k *Key) result {
			left, renews, ok := s.Spend(k)
			return result{left, renews, ok}
		}
		got := []result{spend(k), spend(k), spend(k), spend(&Key{Name: "b", PerMinute: 2})}
		want := []result{{1, 40 * time.Second, true}, {0, 40 * time.Second, true}, {0, 40 * time.Second, false}, {1, 40 * time.Second, true}}
		if !slices.Equal(got, want) {
			t.Errorf("results in the first minute: got %v, want %v", got, want)
		}
		f.Now = f.Now.Add(40 * time.Second)
		f.Is("result in the next minute", spend(k), result{1, time.Minute, true})
	})
}
