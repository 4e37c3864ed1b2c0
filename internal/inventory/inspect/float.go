package inspect

import (
	"math"
	"strconv"
	"strings"
)

// Float is a 32-bit floating-point number of the game, stored as bits. It is only compared
// and formatted, so it needs no arithmetic.
type Float struct {
	Bits uint32
	Set  bool // whether there is a value
}

// set sets the bits. It returns an error unless they are a finite number.
func (f *Float) set(bits uint32) error {
	if bits&0x7f800000 == 0x7f800000 { // infinity or NaN
		return refuse(CodeRange)
	}
	*f = Float{Bits: bits, Set: true}
	return nil
}

// checkWear returns an error if the number is not a wear from 0 to 1.
func (f *Float) checkWear() error {
	const one = 0x3f800000 // greater bits encode numbers above 1 or negative numbers
	if f.Bits > one {
		return refuse(CodeRange)
	}
	return nil
}

// String returns the shortest decimal text of the number as a 64-bit float. Steam and the
// markets use the same format. It returns "" if there is no value.
func (f Float) String() string {
	if !f.Set {
		return ""
	}
	return strconv.FormatFloat(f.wide(), 'f', -1, 64)
}

func (f Float) wide() float64 { return float64(math.Float32frombits(f.Bits)) }

// minPlaces is the minimum number of decimal places of a rounded wear in Agrees.
const minPlaces = 6

// Agrees reports whether a decimal text represents this number. The nearest float to the
// text must be this number, or the text must be this number rounded to at least six decimal
// places.
func (f Float) Agrees(text string) bool {
	near, ok := ParseWear(text)
	if !f.Set || !ok {
		return false
	}
	_, places, _ := strings.Cut(text, ".")
	return near == f || len(places) >= minPlaces && strconv.FormatFloat(f.wide(), 'f', len(places), 64) == text
}

// maxDecimal is the maximum length of a decimal text. The exact text of a float from 0 to 1
// is shorter.
const maxDecimal = 160

// ParseWear parses a wear in Steam's format, a decimal number from 0 to 1. It returns the
// nearest float.
func ParseWear(text string) (wear Float, ok bool) {
	if len(text) > maxDecimal || strings.Trim(text, "0123456789.e-") != "" {
		return Float{}, false
	}
	near, err := strconv.ParseFloat(text, 32) //nolint:forbidigo // a wear is not an amount
	if err != nil || wear.set(math.Float32bits(float32(near))) != nil || wear.checkWear() != nil {
		return Float{}, false
	}
	return wear, true
}
