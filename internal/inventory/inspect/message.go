package inspect

import (
	"strings"
	"unicode/utf8"
)

// Wire types of protobuf. Groups, which nothing writes any more, are refused.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// maxApplied is more stickers, charms or variations than fit on anything.
const maxApplied = 32

// field is one field of a message.
type field struct {
	number int
	wire   int
	value  uint64 // of a varint, or of fixed bytes
	bytes  []byte
}

// fields calls fn for each field of a message. What fn does not know it passes
// over, be it by number or by wire type, as protobuf wants it.
func fields(message []byte, fn func(f field) error) error {
	for len(message) > 0 {
		tag, rest, err := varint(message)
		if err != nil {
			return err
		}
		f := field{number: int(tag >> 3), wire: int(tag & 7)}
		if tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return refuse(CodeMalformed)
		}
		if message, err = f.read(rest); err != nil {
			return err
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// read takes the field's value off what comes after its tag.
func (f *field) read(in []byte) (rest []byte, err error) {
	switch f.wire {
	case wireVarint:
		f.value, rest, err = varint(in)
		return rest, err
	case wireFixed4:
		return f.fixed(in, 4)
	case wireFixed8:
		return f.fixed(in, 8)
	case wireBytes:
		n, rest, err := varint(in)
		switch {
		case err != nil:
			return nil, err
		case n > 0 && len(rest) == 0:
			return nil, refuse(CodeTruncated)
		case n > uint64(len(rest)):
			return nil, refuse(CodeOverrun)
		}
		f.bytes = rest[:n]
		return rest[n:], nil
	}
	return nil, refuse(CodeMalformed)
}

// fixed takes a number of n bytes, the lowest first.
func (f *field) fixed(in []byte, n int) (rest []byte, err error) {
	if len(in) < n {
		return nil, refuse(CodeTruncated)
	}
	for i := range n {
		f.value |= uint64(in[i]) << (8 * i)
	}
	return in[n:], nil
}

// varint takes a number off a message: seven bits a byte, the lowest first.
func varint(in []byte) (v uint64, rest []byte, err error) {
	for i, b := range in {
		if i == 10 || i == 9 && b > 1 {
			return 0, nil, refuse(CodeMalformed)
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, in[i+1:], nil
		}
	}
	return 0, nil, refuse(CodeTruncated)
}

// uint32 sets a number, if the field is one. Of two, the later counts.
func (f *field) uint32(to *uint32) error {
	switch {
	case f.wire != wireVarint:
		return nil
	case f.value > 1<<32-1:
		return refuse(CodeRange)
	}
	*to = uint32(f.value)
	return nil
}

// float sets a float, if the field is one.
func (f *field) float(to *Float) error {
	if f.wire != wireFixed4 {
		return nil
	}
	return to.set(uint32(f.value))
}

// wear sets a wear, which is from 0 to 1.
func (f *field) wear(to *Float) error {
	if err := f.float(to); err != nil {
		return err
	}
	return to.checkWear()
}

// decodeItem reads a CEconItemPreviewDataBlock.
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
		if f.wire == wireVarint {
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
		it.HasSeed = it.HasSeed || f.wire == wireVarint
		return f.uint32(&it.PaintSeed)
	case 9:
		it.HasKills = it.HasKills || f.wire == wireVarint
		return f.uint32(&it.KillScoreType)
	case 10:
		it.HasKills = it.HasKills || f.wire == wireVarint
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

// rare reads the fields that are of little interest.
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
		if f.wire == wireVarint {
			it.EntIndex = int32(f.value) // negative ones come as 64 bits
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

// wear reads the item's wear: the bits of a float as a number.
func (it *Item) wear(f field) error {
	var bits uint32
	if err := f.uint32(&bits); err != nil || f.wire != wireVarint {
		return err
	}
	if err := it.Wear.set(bits); err != nil {
		return err
	}
	return it.Wear.checkWear()
}

func (it *Item) nameTag(f field) error {
	if f.wire != wireBytes {
		return nil
	}
	text := string(f.bytes)
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return refuse(CodeText)
	}
	it.NameTag = text
	return nil
}

// apply reads a sticker or charm and adds it to the others.
func apply(to *[]Applied, f field) error {
	if f.wire != wireBytes {
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
