package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"assay/internal/randtest"
)

// message builds a protobuf message.
type message []byte

func (m message) varint(v uint64) message { return binary.AppendUvarint(m, v) }

func (m message) number(field int, v uint64) message {
	return m.varint(uint64(field)<<3 | uint64(protowire.VarintType)).varint(v)
}

func (m message) float(field int, v float32) message {
	return binary.LittleEndian.AppendUint32(m.varint(uint64(field)<<3|uint64(protowire.Fixed32Type)), math.Float32bits(v))
}

func (m message) bytes(field int, b []byte) message {
	return append(m.varint(uint64(field)<<3|uint64(protowire.BytesType)).varint(uint64(len(b))), b...)
}

// certificate encodes a message as a certificate.
func certificate(key byte, m []byte) string {
	raw := append([]byte{key}, m...)
	raw = binary.BigEndian.AppendUint32(raw, checksum(raw))
	for i := range raw[1:] {
		raw[1+i] ^= key
	}
	return strings.ToUpper(hex.EncodeToString(raw))
}

// encode encodes an item like Steam, which omits zeros.
func encode(it *Item) message {
	var m message
	number := func(field int, v uint64) {
		if v != 0 {
			m = m.number(field, v)
		}
	}
	number(1, uint64(it.AccountID))
	number(2, it.ItemID)
	number(3, uint64(it.DefIndex))
	number(4, uint64(it.PaintIndex))
	number(5, uint64(it.Rarity))
	number(6, uint64(it.Quality))
	if it.Wear.Set {
		m = m.number(7, uint64(it.Wear.Bits))
	}
	if it.HasSeed {
		m = m.number(8, uint64(it.PaintSeed))
	}
	if it.HasKills {
		m = m.number(9, uint64(it.KillScoreType)).number(10, uint64(it.Kills))
	}
	if it.NameTag != "" {
		m = m.bytes(11, []byte(it.NameTag))
	}
	for field, list := range map[int][]Applied{12: it.Stickers, 20: it.Charms, 22: it.Variations} {
		for i := range list {
			m = m.bytes(field, encodeApplied(&list[i]))
		}
	}
	number(13, uint64(it.Inventory))
	number(14, uint64(it.Origin))
	number(15, uint64(it.QuestID))
	number(16, uint64(it.DropReason))
	number(17, uint64(it.MusicIndex))
	number(18, uint64(int64(it.EntIndex)))
	number(19, uint64(it.PetIndex))
	number(21, uint64(it.Style))
	number(23, uint64(it.UpgradeLevel))
	return m
}

func encodeApplied(a *Applied) message {
	var m message
	for field, v := range map[int]uint32{1: a.Slot, 2: a.ID, 6: a.Tint, 10: a.Pattern, 11: a.HighlightReel, 12: a.Wrapped} {
		m = m.number(field, uint64(v))
	}
	for field, f := range map[int]Float{3: a.Wear, 4: a.Scale, 5: a.Rotation, 7: a.OffsetX, 8: a.OffsetY, 9: a.OffsetZ} {
		if f.Set {
			m = m.float(field, math.Float32frombits(f.Bits))
		}
	}
	return m
}

func float(v float32) Float { return Float{Bits: math.Float32bits(v), Set: true} }

// whole returns an item with values in all fields.
func whole() Item {
	return Item{
		AccountID: 1, ItemID: math.MaxUint64, DefIndex: 7, PaintIndex: 474, Rarity: 6, Quality: 9,
		Wear: float(0.6336590647697449), PaintSeed: 0, HasSeed: true, HasKills: true, KillScoreType: 0, Kills: math.MaxUint32,
		NameTag: "Käse ★ \"x\"", Inventory: 3221225482, Origin: 8, QuestID: 2, DropReason: 3, MusicIndex: 4, EntIndex: -1, PetIndex: 5, Style: 6, UpgradeLevel: 7,
		Stickers: []Applied{
			{Slot: 0, ID: 5032, Wear: float(0.25)},
			{Slot: 3, ID: 76, Scale: float(1.5), Rotation: float(-44), OffsetX: float(-0.125), OffsetY: float(0.0625), OffsetZ: float(4), Tint: 9, Wear: float(1)},
		},
		Charms:     []Applied{{Slot: 0, ID: 36, Pattern: 77, HighlightReel: 345, Wrapped: 8}},
		Variations: []Applied{{ID: 1}},
	}
}

func TestDecode_ReadsAllFieldsWithEveryKey(t *testing.T) {
	want := whole()
	for key := range 256 {
		got, err := Decode(certificate(byte(key), encode(&want)))
		if err != nil {
			t.Fatalf("Decode with key %d: got error %v, want none", key, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("item with key %d (-want +got):\n%s", key, d)
		}
	}
}

// This test fails if a new field of Item is missing in whole.
func TestWhole_HasAllFields(t *testing.T) {
	it := whole()
	v := reflect.ValueOf(it)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).IsZero() && name != "PaintSeed" && name != "KillScoreType" {
			t.Errorf("field %s is zero, want a value", name)
		}
	}
}

func TestDecode_AcceptsAllFormatsOfLinks(t *testing.T) {
	it := Item{DefIndex: 9, HasSeed: true, PaintSeed: 209}
	text := certificate(0xcb, encode(&it))
	for _, link := range []string{
		text,
		strings.ToLower(text),
		"steam://rungame/730/76561202255233023/+csgo_econ_action_preview%20" + text,
		"steam://run/730//+csgo_econ_action_preview%20" + text,
		"steam://run/730/en/+csgo_econ_action_preview%20" + text,
		"steam://run/730//+csgo_econ_action_preview " + text,
	} {
		if got, err := Decode(link); err != nil || got.PaintSeed != 209 {
			t.Errorf("%s: got item %+v, error %v, want paint seed 209", link, got, err)
		}
	}
}

func TestDecode_LastOfDuplicateFieldsCounts(t *testing.T) {
	m := message{}.number(8, 1).number(3, 7).number(8, 2).
		bytes(12, message{}.number(2, 5).number(2, 6)).bytes(12, nil)
	it, err := Decode(certificate(0, m))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Item{DefIndex: 7, PaintSeed: 2, HasSeed: true, Stickers: []Applied{{ID: 6}, {}}}, it); d != "" {
		t.Errorf("item (-want +got):\n%s", d)
	}
}

func TestDecode_IgnoresUnknownFields(t *testing.T) {
	m := message{}.number(3, 7).number(99, math.MaxUint64).bytes(100, []byte("new")).float(101, 1).
		bytes(4, []byte("of another type")).number(12, 1).number(11, 2).float(7, 1)
	m = append(m.varint(102<<3|uint64(protowire.Fixed64Type)), 1, 2, 3, 4, 5, 6, 7, 8)
	it, err := Decode(certificate(0x5a, m))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Item{DefIndex: 7}, it); d != "" {
		t.Errorf("item (-want +got):\n%s", d)
	}
}

func TestDecode_ReturnsTheCodeOfEachFault(t *testing.T) {
	seed := message{}.number(8, 1)
	good := certificate(7, seed)
	tooMany := message{}
	for range maxApplied + 1 {
		tooMany = tooMany.bytes(12, nil)
	}
	preview := "steam://run/730//+csgo_econ_action_preview%20"
	for name, c := range map[string]struct {
		in   string
		want Code
	}{
		"empty":                    {"", CodeEmpty},
		"link without certificate": {preview, CodeEmpty},
		"too long":                 {strings.Repeat("A", MaxLink+1), CodeTooLong},
		"another game":             {"steam://rungame/570/1/+csgo_econ_action_preview%20" + good, CodeForeign},
		"another command":          {"steam://run/730//+connect%20" + good, CodeForeign},
		"invalid escape":           {"steam://run/730//+csgo_econ_action_preview%2", CodeForeign},
		"a template":               {preview + "%propid:6%", CodeTemplate},
		"an old template":          {preview + "S%owner_steamid%A%assetid%D7935523998312483177", CodeTemplate},
		"old inventory link":       {preview + "S76561190000000001A698323590D7935523998312483177", CodeOldLink},
		"old market link":          {preview + "M625254122282020305A6760346663D30614827701953021", CodeOldLink},
		"old payload alone":        {"S76561190000000001A698323590D7935523998312483177", CodeOldLink},
		"old payload without D":    {"S76561190000000001A698323590D", CodeNotHex},
		"not hexadecimal":          {"not hex at all", CodeNotHex},
		"trailing space":           {good + " ", CodeNotHex},
		"odd number of digits":     {good + "0", CodeOddHex},
		"short":                    {"00FF", CodeTooShort},
		"no message":               {"0000000000", CodeTooShort},
		"missing value":            {certificate(0, message{}.number(3, 1).varint(3<<3)), CodeTruncated},
		"truncated varint":         {certificate(0, append(message{}.varint(8<<3), 0x80)), CodeTruncated},
		"truncated float":          {certificate(0, append(message{}.varint(99<<3|uint64(protowire.Fixed32Type)), 1, 2, 3)), CodeTruncated},
		"missing bytes":            {"000A0500000000", CodeTruncated},
		"length above the rest":    {"005A10FFFFFFFF00000000", CodeOverrun},
		"maximum length":           {certificate(0, append(message{}.varint(11<<3|uint64(protowire.BytesType)).varint(math.MaxUint64), 1)), CodeOverrun},
		"length in a sticker":      {certificate(0, message{}.bytes(12, message{}.varint(4<<3|uint64(protowire.BytesType)).varint(9).varint(1))), CodeOverrun},
		"field 0":                  {certificate(0, message{}.number(0, 1)), CodeMalformed},
		"field number too high":    {certificate(0, message{}.varint(1<<32).varint(0)), CodeMalformed},
		"a group":                  {certificate(0, message{}.varint(99<<3|3).varint(99<<3|4)), CodeMalformed},
		"wire type 7":              {certificate(0, message{}.varint(99<<3|7).varint(1)), CodeMalformed},
		"varint of eleven bytes":   {certificate(0, append(message{}.varint(8<<3), 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1)), CodeMalformed},
		"varint of 70 bits":        {certificate(0, append(message{}.varint(8<<3), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2)), CodeMalformed},
		"a seed of 33 bits":        {certificate(0, message{}.number(8, 1<<32)), CodeRange},
		"a wear above 1":           {certificate(0, message{}.number(7, uint64(math.Float32bits(1.0000001)))), CodeRange},
		"a wear below 0":           {certificate(0, message{}.number(7, uint64(math.Float32bits(-0.1)))), CodeRange},
		"NaN as wear":              {certificate(0, message{}.number(7, uint64(math.Float32bits(float32(math.NaN()))))), CodeRange},
		"infinite offset":          {certificate(0, message{}.bytes(12, message{}.float(7, float32(math.Inf(-1))))), CodeRange},
		"a sticker's wear above 1": {certificate(0, message{}.bytes(12, message{}.float(3, 2))), CodeRange},
		"invalid UTF-8":            {certificate(0, message{}.bytes(11, []byte("\xff"))), CodeText},
		"a NUL":                    {certificate(0, message{}.bytes(11, []byte("a\x00b"))), CodeText},
		"too many stickers":        {certificate(0, tooMany), CodeTooMany},
		"another seed":             {strings.Replace(certificate(0, message{}.number(8, 1).number(3, 7)), "0040011807", "0040021807", 1), CodeChecksum},
	} {
		it, err := Decode(c.in)
		if code(err) != c.want {
			t.Errorf("%s: got error %v, want code %s", name, err, c.want)
		}
		if d := cmp.Diff(Item{}, it); d != "" {
			t.Errorf("%s: got an item with an error (-want +got):\n%s", name, d)
		}
	}
}

func TestDecode_DetectsEveryFlippedBit(t *testing.T) {
	it := Item{ItemID: 50881986909, DefIndex: 523, PaintIndex: 415, Wear: float(0.008384629), HasSeed: true, PaintSeed: 652}
	raw, err := hex.DecodeString(certificate(0, encode(&it)))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(raw) {
		raw[bit/8] ^= 1 << (bit % 8)
		if _, err := Decode(hex.EncodeToString(raw)); err == nil {
			t.Errorf("flipped bit %d: got no error, want one", bit)
		}
		raw[bit/8] ^= 1 << (bit % 8)
	}
}

func TestFloat_HasSteamsFormatAndComparesBits(t *testing.T) {
	wear := float(0.6401206254959106)
	if got := wear.String(); got != "0.6401206254959106" {
		t.Errorf("String() = %s, want 0.6401206254959106", got)
	}
	for text, want := range map[string]bool{
		"0.6401206254959106": true, "0.64012063": true, "0.640121": true, "0.6401206": true, "0.64012062549591": true,
		"0.640120": false, "0.64012": false, "0.6401207": false, "": false, "0.6401206254959106 ": false, "-0.6401206": false, ".": false,
		"1.6401206": false, "0x1p-1": false, "inf": false, "NaN": false, "0_1": false, strings.Repeat("0", 161): false,
	} {
		if got := wear.Agrees(text); got != want {
			t.Errorf("Agrees(%q) = %v, want %v", text, got, want)
		}
	}
	for _, v := range []float32{0, 1, 0.5, 1e-7, math.SmallestNonzeroFloat32} {
		if f := float(v); !f.Agrees(f.String()) {
			t.Errorf("Agrees(%s) = false for %v, want true for its own text", f, v)
		}
	}
	if tiny := float(1e-5); !tiny.Agrees("1e-05") {
		t.Error(`Agrees("1e-05") = false for 1e-5, want true`)
	}
	if (Float{}).String() != "" || (Float{}).Agrees("0") {
		t.Error("a Float without a value has a text or agrees with 0, want neither")
	}
}

func TestDecode_ReadsEncodedRandomItems(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(500, 100_000) {
		it := Item{
			ItemID: r.Uint64() >> r.IntN(64), DefIndex: r.Uint32() >> r.IntN(32), PaintIndex: r.Uint32() >> r.IntN(32),
			Wear: float(r.Float32()), HasSeed: true, PaintSeed: r.Uint32N(1001), EntIndex: int32(r.Uint32()),
		}
		for range r.IntN(6) {
			it.Stickers = append(it.Stickers, Applied{Slot: r.Uint32N(6), ID: r.Uint32N(10_000), Wear: float(r.Float32()), OffsetX: float(r.Float32() - 0.5)})
		}
		got, err := Decode(certificate(byte(r.IntN(256)), encode(&it)))
		if d := cmp.Diff(it, got); err != nil || d != "" {
			t.Fatalf("Decode: error %v (-want +got):\n%s", err, d)
		}
	}
}

// FuzzDecode checks that errors have a code and that decoded items can be encoded again.
func FuzzDecode(f *testing.F) {
	it := whole()
	f.Add(certificate(0, encode(&it)))
	f.Add(certificate(0xcb, encode(&it)))
	for _, s := range []string{
		"", "00FF", "005A10FFFFFFFF00000000", "steam://run/730//+csgo_econ_action_preview%20%propid:6%",
		"steam://run/730/en/+csgo_econ_action_preview%20M1A2D3",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, link string) {
		it, err := Decode(link)
		if err != nil {
			if code(err) == "" {
				t.Errorf("got error %v, want a code", err)
			}
			return
		}
		text := certificate(1, encode(&it))
		if len(text) > MaxLink { // the encoded item includes zeros that the link omits
			return
		}
		if again, err := Decode(text); err != nil {
			t.Errorf("Decode of the encoded item %+v: got error %v, want none", it, err)
		} else if d := cmp.Diff(it, again); d != "" {
			t.Errorf("item after it was encoded and decoded (-want +got):\n%s", d)
		}
	})
}

// FuzzMessage fuzzes the message decoder without the checksum.
func FuzzMessage(f *testing.F) {
	it := whole()
	f.Add([]byte(encode(&it)))
	f.Add([]byte{0x62, 4, 0x1d, 0, 0, 0x80, 0x3f})
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) > MaxLink/2-5 {
			return
		}
		it, err := decodeItem(m)
		if len(m) < 2 { // too short for a certificate
			return
		}
		got, decodeErr := Decode(certificate(0xff, m))
		if code(err) != code(decodeErr) {
			t.Errorf("got error %v for the message and %v for the certificate, want the same", err, decodeErr)
		}
		if d := cmp.Diff(it, got); d != "" {
			t.Errorf("item of the certificate (-want +got):\n%s", d)
		}
		if it.Wear.Set && !it.Wear.Agrees(it.Wear.String()) {
			t.Errorf("Agrees(%s) = false for the wear %x, want true for its own text", it.Wear, it.Wear.Bits)
		}
	})
}
