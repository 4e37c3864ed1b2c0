package inspect

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fixture decodes a JSON file in ../shared/data/fixtures. The test is skipped if the file is
// missing.
func fixture(tb testing.TB, name string, into any) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "fixtures", name))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skipf("recorded data (../shared/data/fixtures/%s) are not available", name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		tb.Fatal(err)
	}
}

// vectors are links with their expected content.
type vectors struct {
	SelfEncoded []struct {
		Link     string                     `json:"link"`
		Expected map[string]json.RawMessage `json:"expected"`
		MaskKey  string                     `json:"mask_key"`
		Checksum bool                       `json:"checksum_ok"`
	} `json:"self_encoded"`
	OldForm []struct {
		Link string `json:"link"`
	} `json:"old_form"`
	Refused []struct {
		Input string `json:"input"`
		Why   string `json:"why"`
	} `json:"must_be_refused_or_filled"`
}

// members returns the fields of an item as JSON text, by their names in vectors.
func members(it *Item) map[string]string {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	list := func(of []Applied, member func(Applied) uint32) string {
		var b []string
		for _, a := range of {
			b = append(b, number(uint64(member(a))))
		}
		return "[" + strings.Join(b, ",") + "]"
	}
	id := func(a Applied) uint32 { return a.ID }
	out := map[string]string{
		"itemid": number(it.ItemID), "defindex": number(uint64(it.DefIndex)), "paintindex": number(uint64(it.PaintIndex)),
		"rarity": number(uint64(it.Rarity)), "quality": number(uint64(it.Quality)), "paintseed": number(uint64(it.PaintSeed)),
		"paintwear": number(uint64(it.Wear.Bits)), "killeatervalue": number(uint64(it.Kills)),
		"inventory": number(uint64(it.Inventory)), "origin": number(uint64(it.Origin)),
		"n_stickers": strconv.Itoa(len(it.Stickers)), "n_keychains": strconv.Itoa(len(it.Charms)),
		"sticker_ids": list(it.Stickers, id), "keychain_ids": list(it.Charms, id),
		"sticker_slots": list(it.Stickers, func(a Applied) uint32 { return a.Slot }),
	}
	if len(it.Charms) > 0 {
		out["highlight_reel"] = number(uint64(it.Charms[0].HighlightReel))
	}
	return out
}

func TestDecode_ReadsAllVectors(t *testing.T) {
	var v vectors
	fixture(t, "inspect_link_vectors.json", &v)
	for _, c := range v.SelfEncoded {
		it, err := Decode(c.Link)
		if err != nil {
			t.Errorf("%s: got error %v, want none", c.Link, err)
			continue
		}
		got := members(&it)
		for member, want := range c.Expected {
			text := strings.Join(strings.Fields(string(want)), "")
			switch {
			case member == "full_item_name": // links do not contain it
			case member == "floatvalue":
				if !it.Wear.Agrees(text) {
					t.Errorf("%s: got wear %s, want %s", c.Link, it.Wear, text)
				}
			case got[member] != text:
				t.Errorf("%s: %s: got %s, want %s", c.Link, member, got[member], text)
			}
		}
		// Decode also accepts the certificate alone, in lower case.
		certificate := strings.TrimPrefix(c.Link[strings.LastIndexAny(c.Link, " /")+1:], command+"%20")
		if again, err := Decode(strings.ToLower(certificate)); err != nil || members(&again)["itemid"] != got["itemid"] {
			t.Errorf("certificate %s: got error %v, item id %s, want %s", certificate, err, members(&again)["itemid"], got["itemid"])
		}
	}
	t.Logf("compared %d vectors", len(v.SelfEncoded))
}

func TestDecode_DetectsOldLinks(t *testing.T) {
	var v vectors
	fixture(t, "inspect_link_vectors.json", &v)
	for _, c := range v.OldForm {
		if _, err := Decode(c.Link); code(err) != CodeOldLink {
			t.Errorf("%s: got error %v, want code %s", c.Link, err, CodeOldLink)
		}
	}
}

func TestDecode_ReturnsADifferentCodeForEachVector(t *testing.T) {
	var v vectors
	fixture(t, "inspect_link_vectors.json", &v)
	codes := map[Code]string{}
	for _, c := range v.Refused {
		_, err := Decode(c.Input)
		if code(err) == "" {
			t.Errorf("%q (%s): got no error, want one", c.Input, c.Why)
		}
		if other, twice := codes[code(err)]; twice {
			t.Errorf("%s and %s: both have code %s, want different codes", c.Why, other, code(err))
		}
		codes[code(err)] = c.Why
	}
	t.Logf("codes with the reason of their link: %v", codes)
}

// code returns the code of a decoding error, or "".
func code(err error) Code {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return ""
	}
	return e.Code
}

func TestDecode_AgreesWithTheProperties(t *testing.T) {
	var page struct {
		All []struct {
			AssetID    string `json:"assetid"`
			Properties []struct {
				ID    int    `json:"propertyid"`
				Int   string `json:"int_value"`
				Float string `json:"float_value"`
				Text  string `json:"string_value"`
			} `json:"asset_properties"`
		} `json:"asset_properties"`
	}
	fixture(t, "steam_inventory_asset_properties_constructed.json", &page)
	for _, a := range page.All {
		var seed, wear, certificate string
		for _, p := range a.Properties {
			switch p.ID {
			case 1:
				seed = p.Int
			case 2:
				wear = p.Float
			case 6:
				certificate = p.Text
			}
		}
		it, err := Decode(certificate)
		if err != nil {
			t.Errorf("%s: got error %v, want none", a.AssetID, err)
		} else if strconv.FormatUint(it.ItemID, 10) != a.AssetID || strconv.Itoa(int(it.PaintSeed)) != seed || !it.Wear.Agrees(wear) || it.Wear.String() != wear {
			t.Errorf("%s: got id %d, seed %d, wear %s, want seed %s, wear %s", a.AssetID, it.ItemID, it.PaintSeed, it.Wear, seed, wear)
		}
	}
}
