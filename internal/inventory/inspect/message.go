package inspect

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxApplied is the maximum number of stickers, charms or variations. Real items have fewer.
const maxApplied = 32

// field is one field of a message.
type field struct {
	number protowire.Number
	wire   protowire.Type
	value  uint64 // value of a varint or fixed-size field
	bytes  []byte
}

// fields calls fn for each field of a message. fn must ignore fields with an unknown number
// or an unexpected wire type, as protobuf requires.
func fields(message []byte, fn func(f field) error) error {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return wireError(n)
		}
		if number > protowire.MaxValidNumber {
			return refuse(CodeMalformed)
		}
		f := field{number: number, wire: wire}
		rest, err := f.read(message[n:])
		if err != nil {
			return err
		}
		if err := fn(f); err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// read reads the field's value, which follows its tag. It returns the rest of the input.
func (f *field) read(in []byte) (rest []byte, err error) {
	var n int
	switch f.wire {
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(in)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(in)
		f.value = uint64(v)
	case protowire.Fixed64Type:
		f.value, n = protowire.ConsumeFixed64(in)
	case protowire.BytesType:
		// ConsumeBytes returns the same error for a missing value and for a wrong length.
		size, prefix := protowire.ConsumeVarint(in)
		if left := len(in) - prefix; prefix > 0 && left > 0 && size > uint64(left) {
			return nil, refuse(CodeOverrun)
		}
		f.bytes, n = protowire.ConsumeBytes(in)
	default: // groups are deprecated, and CS2 does not use them
		return nil, refuse(CodeMalformed)
	}
	if n < 0 {
		return nil, wireError(n)
	}
	return in[n:], nil
}

// wireError returns the error for a negative length returned by protowire.
func wireError(n int) error {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return refuse(CodeTruncated)
	}
	return refuse(CodeMalformed)
}

// uint32 sets a number if the field is a varint. If the message has the field twice, the
// last value counts.
func (f *field) uint32(to *uint32) error {
	switch {
	case f.wire != protowire.VarintType:
		return nil
	case f.value > 1<<32-1:
		return refuse(CodeRange)
	}
	*to = uint32(f.value)
	return nil
}

// float sets a float if the field has 32 bits.
func (f *field) float(to *Float) error {
	if f.wire != protowire.Fixed32Type {
		return nil
	}
	return to.set(uint32(f.value))
}

// wear sets a wear from 0 to 1.
func (f *field) wear(to *Float) error {
	if err := f.float(to); err != nil {
		return err
	}
	return to.checkWear()
}

// decodeItem decodes a CEconItemPreviewDataBlock message.
func decodeItem(message []byte) (Item, error) {
	var it Item
	err := fields(message, func(f field) error { return it.field(f) })
	if err != nil {
		return Item{}, err
	}
	return it, nil
}

func (it *Item) field(f field) error {
	switch f.number {
	case 1:
		return f.uint32(&it.AccountID)
	case 2:
		if f.wire == protowire.VarintType {
			it.ItemID = f.value
		}
		return nil
	case 3:
		return f.uint32(&it.DefIndex)
	case 4:
		return f.uint32(&it.PaintIndex)
	case 5:
		return f.uint32(&it.Rarity)
	case 6:
		return f.uint32(&it.Quality)
	case 7:
		return it.wear(f)
	case 8:
		it.HasSeed = it.HasSeed || f.wire == protowire.VarintType
		return f.uint32(&it.PaintSeed)
	case 9:
		it.HasKills = it.HasKills || f.wire == protowire.VarintType
		return f.uint32(&it.KillScoreType)
	case 10:
		it.HasKills = it.HasKills || f.wire == protowire.VarintType
		return f.uint32(&it.Kills)
	case 11:
		return it.nameTag(f)
	case 12:
		return apply(&it.Stickers, f)
	case 20:
		return apply(&it.Charms, f)
	case 22:
		return apply(&it.Variations, f)
	}
	return it.rare(f)
}

// rare sets the less common fields.
func (it *Item) rare(f field) error {
	switch f.number {
	case 13:
		return f.uint32(&it.Inventory)
	case 14:
		return f.uint32(&it.Origin)
	case 15:
		return f.uint32(&it.QuestID)
	case 16:
		return f.uint32(&it.DropReason)
	case 17:
		return f.uint32(&it.MusicIndex)
	case 18:
		if f.wire == protowire.VarintType {
			it.EntIndex = int32(f.value) // negative numbers are encoded with 64 bits
		}
	case 19:
		return f.uint32(&it.PetIndex)
	case 21:
		return f.uint32(&it.Style)
	case 23:
		return f.uint32(&it.UpgradeLevel)
	}
	return nil
}

// wear sets the item's wear, which is encoded as a varint with the bits of a float.
func (it *Item) wear(f field) error {
	var bits uint32
	if err := f.uint32(&bits); err != nil || f.wire != protowire.VarintType {
		return err
	}
	if err := it.Wear.set(bits); err != nil {
		return err
	}
	return it.Wear.checkWear()
}

func (it *Item) nameTag(f field) error {
	if f.wire != protowire.BytesType {
		return nil
	}
	text := string(f.bytes)
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return refuse(CodeText)
	}
	it.NameTag = text
	return nil
}

// apply decodes a sticker or charm and appends it to the list.
func apply(to *[]Applied, f field) error {
	if f.wire != protowire.BytesType {
		return nil
	}
	if len(*to) == maxApplied {
		return refuse(CodeTooMany)
	}
	var a Applied
	if err := fields(f.bytes, func(f field) error { return a.field(f) }); err != nil {
		return err
	}
	*to = append(*to, a)
	return nil
}

func (a *Applied) field(f field) error {
	switch f.number {
	case 1:
		return f.uint32(&a.Slot)
	case 2:
		return f.uint32(&a.ID)
	case 3:
		return f.wear(&a.Wear)
	case 4:
		return f.float(&a.Scale)
	case 5:
		return f.float(&a.Rotation)
	case 6:
		return f.uint32(&a.Tint)
	case 7:
		return f.float(&a.OffsetX)
	case 8:
		return f.float(&a.OffsetY)
	case 9:
		return f.float(&a.OffsetZ)
	case 10:
		return f.uint32(&a.Pattern)
	case 11:
		return f.uint32(&a.HighlightReel)
	case 12:
		return f.uint32(&a.Wrapped)
	}
	return nil
}
