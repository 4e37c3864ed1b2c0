package metadata_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/view/metadata"
)

func load(t *testing.T, text string) (metadata.Items, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "items.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return metadata.Load(path)
}

const (
	redline = `{"marketHashName":"AK-47 | Redline (Field-Tested)","type":"Rifle","rarity":"Classified","wear":"Field-Tested","collection":"The Phoenix Collection","imageUrl":"https://example.com/a.png"}`
	knife   = `{"marketHashName":"★ Bayonet | Doppler (Factory New)","phase":"Ruby","type":"Knife","rarity":null,"imageUrl":null}`
	other   = `{"marketHashName":"★ Bayonet | Doppler (Factory New)","type":"Any"}`
	hat     = `{"appId":440,"marketHashName":"Hat"}`
)

func TestLoad_ReadsJSONAndNDJSON(t *testing.T) {
	name := "★ Bayonet | Doppler (Factory New)"
	for _, text := range []string{
		"[" + redline + ",\n" + knife + "," + other + "," + hat + "]\n",
		redline + "\n" + knife + "\n\n" + other + "\r\n" + hat,
	} {
		items, err := load(t, text)
		if err != nil || len(items) != 4 {
			t.Fatalf("Load: got %d items, error %v, want 4", len(items), err)
		}
		want := &metadata.Description{Type: "Rifle", Rarity: "Classified", Wear: "Field-Tested", Collection: "The Phoenix Collection", ImageURL: "https://example.com/a.png"}
		if diff := cmp.Diff(want, items.Of(catalog.Key{AppID: 730, Name: "AK-47 | Redline (Field-Tested)"})); diff != "" {
			t.Errorf("description (-want +got):\n%s", diff)
		}
		for phase, want := range map[string]string{"Ruby": "Knife", "Sapphire": "Any", "": "Any"} {
			if got := items.Of(catalog.Key{AppID: 730, Name: name, Phase: phase}); got == nil || got.Type != want {
				t.Errorf("phase %q: got %+v, want %s", phase, got, want)
			}
		}
		if items.Of(catalog.Key{AppID: 440, Name: "Hat"}) == nil || items.Of(catalog.Key{AppID: 730, Name: "Hat"}) != nil {
			t.Error("Of ignores the game: want Hat in the game 440 only")
		}
	}
	for _, empty := range []string{"", "\n", "[]"} {
		if items, err := load(t, empty); err != nil || len(items) != 0 {
			t.Errorf("Load of %q: got %d items, error %v, want none", empty, len(items), err)
		}
	}
	if items, err := metadata.Load(""); err != nil || items.Of(catalog.Key{}) != nil {
		t.Errorf("Load without a file: got %v, error %v, want no items", items, err)
	}
}

func TestLoad_NamesTheLineOfAFault(t *testing.T) {
	var many strings.Builder
	for i := range 200_001 {
		many.WriteString(`{"marketHashName":"` + strconv.Itoa(i) + `"}` + "\n")
	}
	for text, want := range map[string]string{
		redline + "\n\n" + `{"type":"x"}`:                                  "line 3: marketHashName: is required",
		"[\n" + redline + ",\n" + redline + "]":                            `line 3: the item "AK-47 | Redline (Field-Tested)" occurs twice`,
		hat + "\n" + `{"marketHashName":"x","raritty":"y"}`:                "line 2: raritty: is not known",
		hat + "\n" + `{"marketHashName":"x","Rarity":"y"}`:                 `line 2: Rarity: is not known: write "rarity"`,
		`{"marketHashName":"x","rarity":7}`:                                "line 1: rarity: must be a string: ",
		`{"marketHashName":"x","phase":"Phase 5"}`:                         "line 1: phase: phase ",
		`{"marketHashName":"x","imageUrl":"javascript:a"}`:                 "line 1: imageUrl: must be an address that begins with https:// or http://",
		`{"marketHashName":"x","type":"` + strings.Repeat("t", 129) + `"}`: "line 1: type: must have at most 128 bytes, not 129",
		hat + "\n" + `7`:    "line 2: the item must be an object",
		hat + "\n{\n":       "line 2: ",
		hat + "\nx":         "line 2: the JSON is malformed: ",
		"[" + hat + "\n":    "line 2: ",
		"[" + hat + "]\n[]": "line 1: there is more data after the array",
		hat + "\n\"" + strings.Repeat("x", 1<<20): "line 2: ",
		many.String(): "line 200001: there are more than 200000 items",
	} {
		items, err := load(t, text)
		if items != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %s", text, err, want)
		}
	}
	if _, err := metadata.Load(t.TempDir()); err == nil {
		t.Error("Load of a directory: got no error, want one")
	}
}
