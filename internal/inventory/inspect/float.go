package inspect

import (
	"math"
	"strconv"
	"strings"
)

// Float is a 32-bit float of the game, by its bits. It is compared by them and
// shown as text; nothing is calculated with it.
type Float struct {
	Bits uint32
	Set  bool // false: not stated
}

// set takes the bits of a finite number.
func (f *Float) set(bits uint32) error {
	if bits&0x7f800000 == 0x7f800000 { // infinite, or no number
		return refuse(CodeRange)
	}
	*f = Float{Bits: bits, Set: true}
	return nil
}

// checkWear reports whether a float can be a wear: from 0 to 1.
func (f *Float) checkWear() error {
	const one = 0x3f800000 // greater bits are greater numbers, or negative ones
	if f.Bits > one {
		return refuse(CodeRange)
	}
	return nil
}

// String returns the shortest decimal text of the number as a 64-bit float, like Steam and
// the markets; "" if the number is not set.
func (f Float) String() string {
	if !f.Set {
		return ""
	}
	return strconv.FormatFloat(f.wide(), 'f', -1, 64)
}

func (f Float) wide() float64 { return float64(math.Float32frombits(f.Bits)) }

// minPlaces is the minimum number of decimal places with which a rounded wear identifies
// an item.
const minPlaces = 6

// Agrees reports whether a decimal text means this number: the nearest float to
// it is this one, or it is this one rounded to no fewer than six places.
func (f Float) Agrees(text string) bool {
	near, ok := ParseWear(text)
	if !f.Set || !ok {
		return false
	}
	_, places, _ := strings.Cut(text, ".")
	return near == f || len(places) >= minPlaces && strconv.FormatFloat(f.wide(), 'f', len(places), 64) == text
}

// maxDecimal is the longest decimal text that is looked at: more places than any
// float from 0 to 1 has.
const maxDecimal = 160

// ParseWear reads a wear as Steam writes it, a decimal number from 0 to 1; it is
// the float that is nearest to the text.
func ParseWear(text string) (wear Float, ok bool) {
	if len(text) > maxDecimal || strings.Trim(text, "0123456789.e-") != "" {
		return Float{}, false
	}
	near, err := strconv.ParseFloat(text, 32) //nolint:forbidigo // a wear, no amount
	if err != nil || wear.set(math.Float32bits(float32(near))) != nil || wear.checkWear() != nil {
		return Float{}, false
	}
	return wear, true
}
