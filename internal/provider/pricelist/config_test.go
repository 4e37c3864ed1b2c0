package pricelist

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/fault"
	"assay/internal/provider"
)

// faultsOf returns the faults of a configuration as "pointer: detail".
func faultsOf(t *testing.T, doc string, env Env) []string {
	t.Helper()
	_, err := Parse([]byte(doc), env)
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Invalid {
		t.Fatalf("got error %v, want a fault of kind Invalid", err)
	}
	var all []string
	for _, field := range f.Fields {
		all = append(all, field.Pointer+": "+field.Detail)
	}
	return all
}

const goodMembers = `"key":"k","location":"x","format":"jsonArray","appId":730,"currency":"USD","name":"n"`

func TestConfig_ReportsEachFault(t *testing.T) {
	list := func(members string) string { return `{"lists":[{` + members + `}]}` }
	good := func(extra string) string {
		return list(goodMembers + `,"markets":[{"key":"m","ask":"p"}]` + extra)
	}
	market := func(m string) string { return list(goodMembers + `,"markets":[` + m + `]`) }
	for _, c := range []struct{ name, doc, want string }{
		{"not JSON", `{"lists":[}`, "/lists/0: is not valid JSON at byte 10"},
		{"duplicate", `{"lists":[],"lists":[]}`, "/lists: is not valid JSON at byte 12: duplicate object member name"},
		{"two documents", `{} {}`, ": is not one JSON object"},
		{"not an object", `[]`, ": must be an object"},
		{"no lists", `{}`, "/lists: is missing"},
		{"empty lists", `{"lists":[]}`, "/lists: must not be empty"},
		{"lists not an array", `{"lists":{}}`, "/lists: must be an array of objects"},
		{"list not an object", `{"lists":[1]}`, "/lists/0: must be an object"},
		{"unknown", `{"lists":[],"interwal":"5m"}`, "/interwal: unknown member"},
		{"interval", `{"lists":[],"interval":"5"}`, "/interval: must be a positive duration"},
		{"unknown in list", good(`,"a/b~c":1`), "/lists/0/a~1b~0c: unknown member"},
		{"key", good(``)[:0] + list(strings.Replace(goodMembers, `"k"`, `"k k"`, 1)+`,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/key: must be 1 to 64 letters"},
		{"key twice", `{"lists":[{` + goodMembers + `,"markets":[{"key":"m","ask":"p"}]},{` + goodMembers + `,"markets":[{"key":"m","ask":"p"}]}]}`, `/lists/1/key: another list has the key "k"`},
		{"title", good(`,"title":""`), "/lists/0/title: must be a non-empty string"},
		{"format", list(strings.Replace(goodMembers, "jsonArray", "xml", 1) + `,"markets":[{"key":"m","ask":"p"}]`), `/lists/0/format: must be one of "csv", "jsonArray"`},
		{"compression", good(`,"compression":"br"`), `/lists/0/compression: must be one of "auto"`},
		{"unit", good(`,"unit":300`), "/lists/0/unit: must be a power of ten"},
		{"unit text", good(`,"unit":"100"`), "/lists/0/unit: must be a whole number"},
		{"delimiter", good(`,"delimiter":";"`), "/lists/0/delimiter: is supported only for format csv"},
		{"minItems above maxItems", good(`,"minItems":5,"maxItems":4`), `/lists/0/minItems: must not exceed "maxItems"`},
		{"preset", good(`,"preset":"none"`), "/lists/0/preset: unknown preset: use one of \"bitskins\""},
		{"path", good(`,"root":"a..b"`), "/lists/0/root: path contains an empty name"},
		{"pointer", good(`,"root":"/a~2"`), "/lists/0/root: invalid escape"},
		{"where", good(`,"where":{"game":7}`), "/lists/0/where/game: must be a non-empty string"},
		{"phase", good(`,"phase":{}`), `/lists/0/phase: must contain either "field" or "name"`},
		{"phase place", good(`,"phase":{"name":"front"}`), `/lists/0/phase/name: must be one of "suffix"`},
		{"time", good(`,"time":{}`), `/lists/0/time: must contain either "field" or "modified": true`},
		{"time inside", good(`,"root":"a","time":{"field":"a.t"}`), `/lists/0/time/field: must be outside of "root"`},
		{"time format", good(`,"root":"a","time":{"field":"t","format":"iso"}`), `/lists/0/time/format: must be one of "auto"`},
		{"quote unknown", good(`,"quote":{"price":"p"}`), "/lists/0/quote/price: unknown member"},
		{"quota of a file", good(`,"quota":{"day":1}`), "/lists/0/quota: does not apply to a file"},
		{"limit of a file", good(`,"limit":{"requests":1,"per":"1m"}`), "/lists/0/limit: does not apply to a file"},
		{"headers of a file", good(`,"headers":{"X-Key":"v"}`), "/lists/0/headers: do not apply to a file"},
		{"no markets", list(goodMembers), "/lists/0/markets: is missing"},
		{"market key", market(`{"key":"Steam","ask":"p"}`), "/lists/0/markets/0/key: must be 1 to 64 lower-case"},
		{"market twice", market(`{"key":"m","ask":"p"},{"key":"m","ask":"q"}`), `/lists/0/markets/1/key: another market of the list has the key "m"`},
		{"no price", market(`{"key":"m","bid":"p"}`), `/lists/0/markets/0: must set "ask" or "sale"`},
		{"value", market(`{"key":"m","ask":"p","value":"M"}`), `/lists/0/markets/0/value: requires "market"`},
		{"sales", market(`{"key":"m","ask":"p","sales":"s"}`), `/lists/0/markets/0/sales: set "sales" and "salesWindow" together`},
		{"window", market(`{"key":"m","ask":"p","sales":"s","salesWindow":"5s"}`), `/lists/0/markets/0/salesWindow: must be at least "1h"`},
		{"ask", market(`{"key":"m","ask":["a",1]}`), "/lists/0/markets/0/ask: must contain non-empty strings"},
		{"no currency", list(strings.Replace(goodMembers, `,"currency":"USD"`, "", 1) + `,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/markets/0/currency: is missing"},
		{"currency", market(`{"key":"m","ask":"p","currency":"usd"}`), "/lists/0/markets/0/currency: must be three upper-case letters"},
		{"phases", market(`{"key":"m","ask":"p","phases":{}}`), `/lists/0/markets/0/phases: must set "ask" or "sale"`},
		{"scheme", list(strings.Replace(goodMembers, `"x"`, `"ftp://h/x"`, 1) + `,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/location: must be a path, or a URL"},
		{"user", list(strings.Replace(goodMembers, `"x"`, `"https://u:p@h/x"`, 1) + `,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/location: must be a URL with a host and without user"},
		{"secret in host", list(strings.Replace(goodMembers, `"x"`, `"https://${A}.example/x"`, 1) + `,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/location: a secret must not be within the host"},
		{"open secret", list(strings.Replace(goodMembers, `"x"`, `"https://h/?k=${a"`, 1) + `,"markets":[{"key":"m","ask":"p"}]`), "/lists/0/location: invalid secret: write ${NAME}"},
		{"other meta", `{"lists":[{` + goodMembers + `,"markets":[{"key":"m","ask":"p"}]},{` + strings.Replace(goodMembers, `"k"`, `"l"`, 1) + `,"markets":[{"key":"m","ask":"p","title":"M"}]}]}`, `/lists/1/markets/0: market "m" has a different title`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := faultsOf(t, c.doc, Env{})
			if !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, c.want) }) {
				t.Errorf("got faults %q, want %q", got, c.want)
			}
		})
	}
	if got := faultsOf(t, good(``), Env{}); got != nil {
		t.Errorf("valid configuration: got faults %q, want none", got)
	}
}

func TestConfig_ReportsAllFaultsTogether(t *testing.T) {
	secret := func(string) (string, error) { return "", errUnset }
	got := faultsOf(t, `{"interval":5,"lists":[
		{"key":"a b","location":"https://h/?k=${ONE}","format":"csv","root":"x","appId":0,"minItems":-1,"colour":"red",
		 "headers":{"X-Two":"${TWO}","Host":"h"},"quote":{"colour":1},
		 "markets":[{"ask":"p","unit":7},{"key":"m","sales":"s"}]},
		{"preset":"skinstrack"}]}`, Env{Secret: secret})
	want := []string{
		"/interval: ", "/lists/0/key: ", "/lists/0/appId: ", "/lists/0/minItems: ", "/lists/0/location: the secret ONE is not set",
		"/lists/0/headers/X-Two: the secret TWO is not set", "/lists/0/headers/Host: ", "/lists/0/root: ", "/lists/0/name: ",
		"/lists/0/quote/colour: unknown member", "/lists/0/markets/0/key: ", "/lists/0/markets/0/unit: ", "/lists/0/markets/0/currency: ",
		"/lists/0/markets/1: ", "/lists/0/markets/1/sales: ", "/lists/0/markets/1/currency: ", "/lists/0/colour: unknown member",
		"/lists/1/key: ", "/lists/1/headers/X-API-KEY: the secret SKINSTRACK_API_KEY is not set",
	}
	for _, w := range want {
		if !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, w) }) {
			t.Errorf("got no fault that begins with %q, want one", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d faults, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

func TestConfig_ListOverridesPresetMembers(t *testing.T) {
	c, err := Parse([]byte(`{"interval":"15m","lists":[{"key":"b","preset":"bitskins","appId":252490,"minItems":5,
		"markets":[{"key":"bits","title":"Bits","ask":"price_avg"}]}]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Config: c, Clients: clientsOf(t, c, provider.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Describe()
	if d.Interval != 15*time.Minute || d.Files[0].AppID != 252490 || d.Markets[0].Key != "bits" || d.Markets[0].AppIDs[0] != 252490 {
		t.Errorf("got description %+v, want interval 15m, app 252490 and market bits", d)
	}
	l := c.lists[0]
	if l.location.url != "https://api.bitskins.com/market/insell/252490" || l.minItems != 5 || l.quotes[0].unit != 1000 {
		t.Errorf("got list %+v, want the app in its URL, 5 items and unit 1000", l)
	}
}

func TestConfig_MergesMarketsOfLists(t *testing.T) {
	c, err := Parse([]byte(`{"lists":[
		{`+goodMembers+`,"markets":[{"key":"m","title":"M","ask":"p","pool":"x","maxAge":"48h"}]},
		{`+strings.Replace(strings.Replace(goodMembers, `"k"`, `"l"`, 1), "730", "570", 1)+`,
		 "markets":[{"key":"m","title":"M","sale":"p","sales":"s","salesWindow":"720h","pool":"x","maxAge":"48h"}]}]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.markets) != 1 {
		t.Fatalf("got markets %+v, want one", c.markets)
	}
	m := c.markets[0]
	if m.SalesWindow != 720*time.Hour || m.MaxAge != 48*time.Hour || m.Pool != "x" || !slices.Equal(m.AppIDs, []int32{730, 570}) {
		t.Errorf("got market %+v, want the settings of both lists", m)
	}
}

func TestConfig_ReturnsHostsAndSecretNames(t *testing.T) {
	c, err := Parse([]byte(`{"lists":[{"key":"a","preset":"steamapis"},{"key":"b","preset":"skinstrack","location":"http://127.0.0.1:8081/x"},
		{"key":"c","preset":"lis-skins","location":"file.json"}]}`), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Hosts(); !slices.Equal(got, []provider.Host{{Key: "api.steamapis.com"}, {Key: "127.0.0.1:8081"}}) {
		t.Errorf("got hosts %+v, want api.steamapis.com and 127.0.0.1:8081", got)
	}
	if got := c.SecretNames(); !slices.Equal(got, []string{"SKINSTRACK_API_KEY", "STEAMAPIS_API_KEY"}) {
		t.Errorf("got secrets %q, want SKINSTRACK_API_KEY and STEAMAPIS_API_KEY", got)
	}
}

func TestConfig_ListsOfAHostShareItsBudget(t *testing.T) {
	doc := func(limits ...string) string {
		var lists []string
		for i, limit := range limits {
			lists = append(lists, fmt.Sprintf(`{"key":"l%d","preset":"lis-skins","location":"https://Shop.example/%d"%s,
				"markets":[{"key":"m%d","ask":"price"}]}`, i, i, limit, i))
		}
		return `{"lists":[` + strings.Join(lists, ",") + `]}`
	}
	c, err := Parse([]byte(doc("", `,"limit":{"requests":8,"per":"5m"}`, "")), Env{})
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Host{{Key: "shop.example", Limit: provider.Limit{Requests: 8, Per: 5 * time.Minute}}}
	if !slices.Equal(c.Hosts(), want) {
		t.Errorf("got hosts %+v, want %+v", c.Hosts(), want)
	}
	got := faultsOf(t, doc(`,"limit":{"requests":8,"per":"5m"}`, `,"limit":{"requests":9,"per":"5m"}`), Env{})
	if !slices.Equal(got, []string{"/lists/1/limit: host shop.example has a different limit in another list"}) {
		t.Errorf("different limits: got faults %q, want one for the limit", got)
	}
	if c, err = Parse([]byte(doc(`,"quota":{"month":30000}`, "", `,"quota":{"month":30000}`)), Env{}); err != nil {
		t.Fatal(err)
	}
	if want = []provider.Host{{Key: "shop.example", Quota: provider.Quota{Month: 30000}}}; !slices.Equal(c.Hosts(), want) {
		t.Errorf("got hosts %+v, want %+v", c.Hosts(), want)
	}
	got = faultsOf(t, doc(`,"quota":{"day":1}`, `,"quota":{"day":1,"month":2}`, `,"quota":{}`), Env{})
	if !slices.Equal(got, []string{
		"/lists/1/quota: host shop.example has a different quota in another list",
		`/lists/2/quota: must set "day", "month" or both`,
	}) {
		t.Errorf("different and empty quotas: got faults %q, want one for each", got)
	}
}

func TestLoad_LocationsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "lists.json")
	doc := `{"lists":[{` + strings.Replace(goodMembers, `"x"`, `"sub/a.json"`, 1) + `,"markets":[{"key":"m","ask":"p"}]},
		{` + strings.NewReplacer(`"k"`, `"l"`, `"x"`, `"file:///abs/b%20c.json"`).Replace(goodMembers) + `,"markets":[{"key":"m","ask":"p"}]}]}`
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.lists[0].location.file, filepath.Join(dir, "sub", "a.json"); got != want {
		t.Errorf("got location %q, want %q", got, want)
	}
	if got := c.lists[1].location.file; got != filepath.FromSlash("/abs/b c.json") {
		t.Errorf("got location %q, want /abs/b c.json", got)
	}
	if _, err := Load(filepath.Join(dir, "none.json"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got error %v, want %v", err, os.ErrNotExist)
	}
	if err := os.WriteFile(file, make([]byte, maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err == nil || !strings.Contains(err.Error(), "must not exceed") {
		t.Errorf("file over the maximum size: got error %v, want one that names the limit", err)
	}
}
