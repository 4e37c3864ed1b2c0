package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/fault"
)

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// body returns the body of a push with items.
func body(items string) string {
	return `{"appId":730,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[` + items + `]}`
}

func decode(text string) (Push, error) { return DecodePush(strings.NewReader(text), noon) }

func TestDecodePush_ReadsItemsWithTheirDefaults(t *testing.T) {
	got, err := decode(body(`
		{"assetId":"1","marketHashName":"AK-47 | Redline (Field-Tested)"},
		{"assetId":"2","marketHashName":" two  spaces \n","phase":"Ruby","classId":"c","instanceId":"0","amount":2147483647,
		 "tradable":false,"marketable":true,"inspect":"00183C20B803280538E9A3C5DD0340E102C246A0D1"},
		{"assetId":"3","marketable":false},
		{"assetId":"4","marketable":false,"marketHashName":"","phase":null,"inspect":null,"classId":null,"instanceId":null}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Push{
		AppID: 730, ContextID: "2", SnapshotAt: noon.Add(-time.Minute),
		Assets: []Asset{
			{AssetID: "1", Name: "AK-47 | Redline (Field-Tested)", Amount: 1, Tradable: true, Marketable: true},
			{
				AssetID: "2", Name: " two  spaces \n", Phase: "Ruby", ClassID: "c", InstanceID: "0", Amount: math.MaxInt32,
				Marketable: true, Inspect: "00183C20B803280538E9A3C5DD0340E102C246A0D1",
			},
			{AssetID: "3", Amount: 1, Tradable: true},
			{AssetID: "4", Amount: 1, Tradable: true},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded push (-want +got):\n%s", d)
	}
}

func TestDecodePush_AcceptsAnEmptyInventory(t *testing.T) {
	got, err := decode(body(""))
	if err != nil || len(got.Assets) != 0 || got.AppID != 730 {
		t.Errorf("DecodePush = %+v, %v, want no items", got, err)
	}
}

func TestDecodePush_PreservesNames(t *testing.T) {
	names := []string{
		"★ StatTrak™ Karambit | Doppler (Factory New)", "a/b", "..", "  ", "x ", "&lt;", "%2F", "壱", "e\u0301", "\u00e9", "\"\\", "a\nb", strings.Repeat("x", 512),
	}
	for _, name := range names {
		got, err := decode(body(fmt.Sprintf(`{"assetId":"1","marketHashName":%s}`, quote(name))))
		if err != nil || got.Assets[0].Name != name {
			t.Errorf("name %q: got %+v, error %v, want the same name", name, got, err)
		}
	}
}

// quote returns a JSON string.
func quote(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`).Replace(s) + `"`
}

func TestDecodePush_ReportsEachFault(t *testing.T) {
	item := func(members string) string { return body(`{"assetId":"1","marketHashName":"x",` + members + `}`) }
	head := func(member string) string {
		return `{"appId":730,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[],` + member + `}`
	}
	without := func(members string) string { return `{` + members + `}` }
	for name, c := range map[string]struct{ in, pointer, want string }{
		"not an object":          {`[]`, "", "must be an object, not an array"},
		"null":                   {`null`, "", "must be an object, not null"},
		"no appId":               {without(`"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/appId", "is required"},
		"no contextId":           {without(`"appId":730,"snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/contextId", "is required"},
		"no snapshotAt":          {without(`"appId":730,"contextId":"2","items":[]`), "/snapshotAt", "is required"},
		"no items":               {without(`"appId":730,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z"`), "/items", "is required"},
		"null items":             {without(`"appId":730,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":null`), "/items", "must be an array, not null"},
		"appId as text":          {without(`"appId":"730","contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/appId", "without quotes"},
		"appId zero":             {without(`"appId":0,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/appId", "whole number from 1"},
		"contextId as number":    {without(`"appId":730,"contextId":2,"snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/contextId", `write "2", not 2`},
		"snapshotAt as number":   {without(`"appId":730,"contextId":"2","snapshotAt":1700000000,"items":[]`), "/snapshotAt", "must be a time such as"},
		"snapshotAt as date":     {without(`"appId":730,"contextId":"2","snapshotAt":"2026-10-01","items":[]`), "/snapshotAt", "must be a time such as"},
		"snapshotAt zero":        {without(`"appId":730,"contextId":"2","snapshotAt":"0001-01-01T00:00:00Z","items":[]`), "/snapshotAt", "must not be before 2003"},
		"unknown member":         {head(`"user":"u1"`), "/user", "is not known"},
		"member in another case": {without(`"appid":730,"appId":730,"contextId":"2","snapshotAt":"2026-10-01T11:59:00Z","items":[]`), "/appid", `write "appId"`},
		"item is a string":       {body(`"x"`), "/items/0", "must be an object, not a string"},
		"no asset id":            {body(`{"marketHashName":"x"}`), "/items/0/assetId", "is required"},
		"empty asset id":         {body(`{"assetId":"","marketHashName":"x"}`), "/items/0/assetId", "must not be empty"},
		"asset id as number":     {body(`{"assetId":30217374391,"marketHashName":"x"}`), "/items/0/assetId", `write "30217374391", not 30217374391`},
		"no name":                {body(`{"assetId":"1"}`), "/items/0/marketHashName", `unless "marketable" is false`},
		"empty name":             {body(`{"assetId":"1","marketHashName":""}`), "/items/0/marketHashName", `unless "marketable" is false`},
		"null name":              {body(`{"assetId":"1","marketHashName":null}`), "/items/0/marketHashName", `unless "marketable" is false`},
		"name as number":         {body(`{"assetId":"1","marketHashName":5}`), "/items/0/marketHashName", `write "5"`},
		"long name":              {body(`{"assetId":"1","marketHashName":"` + strings.Repeat("x", catalog.MaxName+1) + `"}`), "/items/0/marketHashName", "at most 512 bytes"},
		"NUL in a name":          {body(`{"assetId":"1","marketHashName":"a\u0000b"}`), "/items/0/marketHashName", "NUL"},
		"unknown phase":          {item(`"phase":"Phase 5"`), "/items/0/phase", "phase must be"},
		"amount zero":            {item(`"amount":0`), "/items/0/amount", "from 1 to 2147483647"},
		"amount too large":       {item(`"amount":2147483648`), "/items/0/amount", "from 1 to 2147483647"},
		"amount with fraction":   {item(`"amount":1.5`), "/items/0/amount", "whole number"},
		"amount as text":         {item(`"amount":"1"`), "/items/0/amount", "without quotes"},
		"null amount":            {item(`"amount":null`), "/items/0/amount", "must be a number, not null"},
		"tradable as number":     {item(`"tradable":1`), "/items/0/tradable", "must be true or false, not a number"},
		"long inspect":           {item(`"inspect":"` + strings.Repeat("A", MaxInspect+1) + `"`), "/items/0/inspect", "at most 4096 bytes"},
		"snake case":             {item(`"market_hash_name":"x"`), "/items/0/market_hash_name", "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(c.in)
			f := fault.Of(err)
			if f == nil || f.Kind != fault.Invalid || f.Code != "invalid_body" {
				t.Fatalf("DecodePush = %v, want an invalid_body fault", err)
			}
			for _, field := range f.Fields {
				if field.Pointer == c.pointer && strings.Contains(field.Detail, c.want) {
					if c.pointer != "" && len(f.Fields) != 1 {
						t.Errorf("got %d faults %v, want 1", len(f.Fields), f.Fields)
					}
					if got.Assets != nil {
						t.Error("got assets and an error, want only the error")
					}
					return
				}
			}
			t.Errorf("got faults %v, want %q at %q", f.Fields, c.want, c.pointer)
		})
	}
}

func TestDecodePush_RejectsDuplicateAssets(t *testing.T) {
	_, err := decode(body(`{"assetId":"7","marketHashName":"x"},{"assetId":"8","marketHashName":"x"},{"assetId":"7","marketHashName":"y"}`))
	f := fault.Of(err)
	if f == nil || len(f.Fields) != 1 || f.Fields[0].Pointer != "/items/2/assetId" || !strings.Contains(f.Fields[0].Detail, "/items/0/assetId") {
		t.Errorf("DecodePush = %v, want a fault with both indices", err)
	}
}

func TestDecodePush_RejectsSnapshotsInTheFuture(t *testing.T) {
	at := func(at time.Time) string {
		return `{"appId":730,"contextId":"2","items":[],"snapshotAt":"` + at.Format(time.RFC3339Nano) + `"}`
	}
	if _, err := decode(at(noon.Add(MaxAhead))); err != nil {
		t.Errorf("exactly five minutes ahead: got error %v, want none", err)
	}
	_, err := decode(at(noon.Add(MaxAhead + time.Microsecond)))
	if f := fault.Of(err); f == nil || f.Fields[0].Pointer != "/snapshotAt" || !strings.Contains(f.Fields[0].Detail, "2026-10-01T12:00:00Z") {
		t.Errorf("more than five minutes ahead: got error %v, want a fault with the server's time", err)
	}
	got, err := decode(at(noon.In(time.FixedZone("", 3600))))
	if err != nil || !got.SnapshotAt.Equal(noon) || got.SnapshotAt.Location() != time.UTC {
		t.Errorf("another time zone: got %v, error %v, want %v", got.SnapshotAt, err, noon)
	}
}

// manyItems returns a reader that generates a push with n items.
func manyItems(n int, item func(i int) string) io.Reader {
	r, w := io.Pipe()
	go func() {
		head, tail, _ := strings.Cut(body("|"), "|")
		_, err := io.WriteString(w, head)
		for i := 0; i < n && err == nil; i++ {
			sep := ","
			if i == 0 {
				sep = ""
			}
			_, err = io.WriteString(w, sep+item(i))
		}
		if err == nil {
			_, err = io.WriteString(w, tail)
		}
		w.CloseWithError(err)
	}()
	return r
}

func TestDecodePush_LimitsTheNumberOfItems(t *testing.T) {
	item := func(i int) string { return fmt.Sprintf(`{"assetId":"%d","marketHashName":"x"}`, i) }
	got, err := DecodePush(manyItems(MaxItems, item), noon)
	if err != nil || len(got.Assets) != MaxItems {
		t.Fatalf("maximum number of items: got %d assets, error %v, want %d", len(got.Assets), err, MaxItems)
	}
	endless := manyItems(math.MaxInt, item)
	defer endless.(io.Closer).Close()
	_, err = DecodePush(endless, noon)
	if f := fault.Of(err); f == nil || f.Kind != fault.TooLarge || f.Code != "too_many_items" {
		t.Errorf("endless items: got error %v, want too_many_items", err)
	}
}

func TestDecodePush_UsesLittleMemoryForInvalidPushes(t *testing.T) {
	const size = 32 << 20
	wide := fmt.Sprintf(`{"unknown":[%s1],"assetId":1}`, strings.Repeat("1,", 500))
	n := size / len(wide)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := DecodePush(manyItems(n, func(int) string { return wide }), noon)
	runtime.ReadMemStats(&after)
	if f := fault.Of(err); f == nil || len(f.Fields) != 20 || !strings.HasSuffix(f.Detail, " faults; errors lists the first 20.") {
		t.Errorf("DecodePush = %v, want 20 faults and the number of further faults", err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("heap grew by %d bytes for an invalid push of %d bytes, want at most 8 MiB", grown, size)
	}
}

func TestDecodePush_ReturnsErrorsOfTheReader(t *testing.T) {
	broken := errors.New("body too large")
	_, err := DecodePush(io.MultiReader(strings.NewReader(body("")[:20]), iotest.ErrReader(broken)), noon)
	if !errors.Is(err, broken) {
		t.Errorf("DecodePush = %v, want %v", err, broken)
	}
}

func FuzzDecodePush(f *testing.F) {
	f.Add([]byte(body(`{"assetId":"1","marketHashName":"x","phase":"Ruby","amount":3,"tradable":false}`)))
	f.Add([]byte(body(`{"assetId":"1","marketable":false},{"assetId":"1"},{"assetId":2,"amount":"1"}`)))
	f.Add([]byte(`{"items":[{}],"items":[],"a":`))
	f.Add([]byte("{\"appId\":1e400,\"contextId\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		push, err := DecodePush(bytes.NewReader(in), noon)
		if err != nil {
			if f := fault.Of(err); f == nil || len(f.Fields) > 20 || len(f.Error()) > 20*1000 {
				t.Fatalf("got error %v, want a fault of limited size", err)
			}
			return
		}
		checkPush(t, push)
	})
}

// checkPush fails the test if a push is invalid.
func checkPush(t *testing.T, push Push) {
	t.Helper()
	if push.AppID < 1 || push.ContextID == "" || push.SnapshotAt.IsZero() || push.SnapshotAt.After(noon.Add(MaxAhead)) {
		t.Errorf("got the push %+v, want a valid one or an error", push)
	}
	seen := map[string]bool{}
	for _, a := range push.Assets {
		if a.AssetID == "" || seen[a.AssetID] || a.Amount < 1 || a.Amount > math.MaxInt32 || catalog.CheckPhase(a.Phase) != nil {
			t.Errorf("got the asset %+v, want a valid one or an error", a)
		}
		if _, named := a.Key(push.AppID); named != (catalog.CheckName(a.Name) == nil) || (!named && a.Marketable) {
			t.Errorf("got the asset %+v, want a valid name or an error", a)
		}
		seen[a.AssetID] = true
	}
}
