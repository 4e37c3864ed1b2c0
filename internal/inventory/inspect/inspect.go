// Package inspect decodes inspect links of CS2. It sends no requests, because a link
// contains a certificate: a protobuf message with a checksum. The checksum is not a
// signature. Anyone can create a valid link, so another source must confirm its content.
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

// Code is the reason for a decoding error. Codes are stored and returned by the API, so they
// must not change.
type Code string

// The codes. The checksum is checked last.
const (
	CodeEmpty     Code = "empty"           // the text is empty
	CodeTooLong   Code = "too_long"        // the text is longer than MaxLink
	CodeForeign   Code = "foreign_link"    // the link is not an inspect link of CS2
	CodeTemplate  Code = "template"        // the link has unfilled placeholders
	CodeOldLink   Code = "old_link"        // the link has the old format without a certificate; only Steam can resolve it
	CodeNotHex    Code = "not_hex"         // the certificate is not hexadecimal
	CodeOddHex    Code = "odd_hex"         // the certificate has an odd number of digits
	CodeTooShort  Code = "too_short"       // the certificate is shorter than minBytes
	CodeTruncated Code = "truncated_field" // the message ends before the end of a field
	CodeOverrun   Code = "length_overrun"  // a value is longer than the rest of the message
	CodeMalformed Code = "malformed"       // the message is not valid protobuf
	CodeRange     Code = "out_of_range"    // a number is outside of the field's range
	CodeText      Code = "bad_text"        // the name tag is not UTF-8 or contains NUL
	CodeTooMany   Code = "too_many"        // there are more than maxApplied stickers or charms
	CodeChecksum  Code = "bad_checksum"    // the checksum is wrong
)

// Error is a decoding error.
type Error struct{ Code Code }

// Error returns the code as text.
func (e *Error) Error() string { return "inspect: " + strings.ReplaceAll(string(e.Code), "_", " ") }

func refuse(code Code) error { return &Error{code} }

// Item is the content of a certificate. Steam omits numbers that are 0, so missing numbers
// are 0. Fields such as HasKills report whether a number was present.
type Item struct {
	AccountID  uint32
	ItemID     uint64 // asset id when the link was created; 0 if unknown
	DefIndex   uint32
	PaintIndex uint32
	Rarity     uint32
	Quality    uint32
	Wear       Float // in [0, 1]
	PaintSeed  uint32
	HasSeed    bool
	// HasKills is true for StatTrak items, which have a counter of kills.
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
	Wrapped       uint32 // id of the sticker in a sticker slab
}

// Parts of an inspect link. The app id of the game is between them.
const (
	scheme  = "steam://"
	command = "+csgo_econ_action_preview"
)

// Decode decodes an inspect link or a certificate. Its errors have type *Error.
func Decode(link string) (Item, error) {
	text, err := payload(link)
	if err != nil {
		return Item{}, err
	}
	return decodeHex(text)
}

// payload returns the certificate in a link. It returns other text unchanged.
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

// minBytes is the minimum size of a certificate: a key of 1 byte, a field of 2 bytes and a
// checksum of 4 bytes.
const minBytes = 7

// decodeHex decodes a certificate in hexadecimal form. It consists of a key byte, a message
// and a checksum. Each byte after the key is XORed with the key.
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

// checksum returns the checksum of the key byte and the unmasked message.
func checksum(keyAndMessage []byte) uint32 {
	c := crc32.ChecksumIEEE(keyAndMessage)
	return c&0xffff ^ uint32(len(keyAndMessage)-1)*c
}

func isHex(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F')
	})
}

// IsOld reports whether a link's payload has the format that Steam used before certificates:
// S<owner>A<asset>D<number> or M<listing>A<asset>D<number>. All numbers are decimal.
func IsOld(carried string) bool {
	if carried == "" || carried[0] != 'S' && carried[0] != 'M' {
		return false
	}
	owner, rest, found := strings.Cut(carried[1:], "A")
	asset, number, complete := strings.Cut(rest, "D")
	return found && complete && digits(owner) && digits(asset) && digits(number)
}

// digits reports whether text consists of 1 to 20 decimal digits.
func digits(text string) bool {
	return text != "" && len(text) <= 20 && strings.Trim(text, "0123456789") == ""
}
