// Package inspect decodes inspect links of CS2 without a request: a link carries a
// certificate, a protobuf message with a checksum. The checksum is no signature: anyone can
// write a valid link, so its content is a claim until another source confirms it.
package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/url"
	"strings"
)

// MaxLink is the maximum length of a link or certificate, in bytes.
const MaxLink = 4096

// Code is the reason something cannot be decoded. Codes are stable: they are stored
// and shown.
type Code string

// The codes. Structure is looked at before the checksum.
const (
	CodeEmpty     Code = "empty"           // the text is empty
	CodeTooLong   Code = "too_long"        // longer than MaxLink
	CodeForeign   Code = "foreign_link"    // a link that inspects nothing of CS2
	CodeTemplate  Code = "template"        // a link whose placeholders were not filled in
	CodeOldLink   Code = "old_link"        // a link that only names the item; Steam alone knows more
	CodeNotHex    Code = "not_hex"         // no certificate: those are hexadecimal
	CodeOddHex    Code = "odd_hex"         // half a byte is missing
	CodeTooShort  Code = "too_short"       // no room for a key, a field and a checksum
	CodeTruncated Code = "truncated_field" // the message ends where a value should begin
	CodeOverrun   Code = "length_overrun"  // a value is longer than the rest of the message
	CodeMalformed Code = "malformed"       // no protobuf message
	CodeRange     Code = "out_of_range"    // a number that the field cannot have
	CodeText      Code = "bad_text"        // a name tag that is no UTF-8, or has a NUL
	CodeTooMany   Code = "too_many"        // more stickers or charms than fit on anything
	CodeChecksum  Code = "bad_checksum"    // the message was changed
)

// Error is why something cannot be decoded.
type Error struct{ Code Code }

// Error names the code.
func (e *Error) Error() string { return "inspect: " + strings.ReplaceAll(string(e.Code), "_", " ") }

func refuse(code Code) error { return &Error{code} }

// Item is the content of a certificate. A missing number is 0, because Steam omits zeros;
// fields such as HasKills distinguish the two.
type Item struct {
	AccountID  uint32
	ItemID     uint64 // the asset id at the time of the link; 0: not said
	DefIndex   uint32
	PaintIndex uint32
	Rarity     uint32
	Quality    uint32
	Wear       Float // in [0, 1]
	PaintSeed  uint32
	HasSeed    bool
	// HasKills reports whether kills are counted (StatTrak), even if there are none.
	HasKills      bool
	KillScoreType uint32
	Kills         uint32
	NameTag       string
	Stickers      []Applied
	Charms        []Applied
	Variations    []Applied
	Inventory     uint32
	Origin        uint32
	QuestID       uint32
	DropReason    uint32
	MusicIndex    uint32
	EntIndex      int32
	PetIndex      uint32
	Style         uint32
	UpgradeLevel  uint32
}

// Applied is a sticker, patch or charm on an item.
type Applied struct {
	Slot          uint32 // from 0
	ID            uint32
	Wear          Float // in [0, 1]
	Scale         Float
	Rotation      Float // degrees
	Tint          uint32
	OffsetX       Float
	OffsetY       Float
	OffsetZ       Float
	Pattern       uint32
	HighlightReel uint32
	Wrapped       uint32 // the sticker in a sticker slab
}

// scheme is how links begin, before the game's number and its command.
const (
	scheme  = "steam://"
	command = "+csgo_econ_action_preview"
)

// Decode decodes a link, or the certificate alone. An error is an *Error.
func Decode(link string) (Item, error) {
	text, err := payload(link)
	if err != nil {
		return Item{}, err
	}
	return decodeHex(text)
}

// payload returns the payload of a link. Text that is no link is returned unchanged.
func payload(link string) (string, error) {
	switch {
	case link == "":
		return "", refuse(CodeEmpty)
	case len(link) > MaxLink:
		return "", refuse(CodeTooLong)
	case !strings.HasPrefix(link, scheme):
		return link, nil
	case strings.Contains(link, "%propid:") || strings.Contains(link, "%assetid%") || strings.Contains(link, "%owner_steamid%"):
		return "", refuse(CodeTemplate)
	}
	unescaped, err := url.PathUnescape(link)
	if err != nil {
		return "", refuse(CodeForeign)
	}
	// steam://rungame/730/76561202255233023/+csgo_econ_action_preview ...
	game, carried, found := strings.Cut(strings.TrimPrefix(unescaped, scheme), command+" ")
	if !found || !strings.HasPrefix(game, "run/730/") && !strings.HasPrefix(game, "rungame/730/") {
		return "", refuse(CodeForeign)
	}
	return carried, nil
}

// minBytes is a key, a field of a byte with a tag of a byte, and a checksum.
const minBytes = 7

// decodeHex decodes a certificate: a key, and, each byte masked with it, a
// message and its checksum.
func decodeHex(text string) (Item, error) {
	switch {
	case text == "":
		return Item{}, refuse(CodeEmpty)
	case IsOld(text):
		return Item{}, refuse(CodeOldLink)
	case !isHex(text):
		return Item{}, refuse(CodeNotHex)
	case len(text)%2 != 0:
		return Item{}, refuse(CodeOddHex)
	case len(text) < 2*minBytes:
		return Item{}, refuse(CodeTooShort)
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return Item{}, refuse(CodeNotHex)
	}
	for i := range raw[1:] {
		raw[1+i] ^= raw[0]
	}
	end := len(raw) - 4
	item, err := decodeItem(raw[1:end])
	if err != nil {
		return Item{}, err
	}
	if checksum(raw[:end]) != binary.BigEndian.Uint32(raw[end:]) {
		return Item{}, refuse(CodeChecksum)
	}
	return item, nil
}

// checksum is that of a message without its mask, after the key.
func checksum(keyAndMessage []byte) uint32 {
	c := crc32.ChecksumIEEE(keyAndMessage)
	return c&0xffff ^ uint32(len(keyAndMessage)-1)*c
}

func isHex(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F')
	})
}

// IsOld reports whether what a link carries is of the form that Steam used before
// certificates: the owner (S) or the market listing (M), the asset (A) and a number
// (D), each in decimal digits.
func IsOld(carried string) bool {
	if carried == "" || carried[0] != 'S' && carried[0] != 'M' {
		return false
	}
	owner, rest, found := strings.Cut(carried[1:], "A")
	asset, number, complete := strings.Cut(rest, "D")
	return found && complete && digits(owner) && digits(asset) && digits(number)
}

// digits reports whether text is a number of at most 64 bits or so.
func digits(text string) bool {
	return text != "" && len(text) <= 20 && strings.Trim(text, "0123456789") == ""
}
