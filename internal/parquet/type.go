package parquet

import "encoding/binary"

// Type is the type of a column.
type Type byte

// The types. All but String contain integers.
const (
	String    Type = iota
	Int32          // 32 bits, signed
	Int64          // 64 bits, signed
	Decimal        // 64 bits, in millionths: a decimal of 18 digits, 6 of them after the point
	Timestamp      // 64 bits, in microseconds since 1970, UTC
)

const (
	precision = 18
	scale     = 6
)

// describe returns the Type of the format, the ConvertedType for old readers, and the LogicalType.
func (t Type) describe() (physical, converted int32, logical structure) {
	switch t {
	case String:
		return 6, 0, structure{1: structure{}}
	case Int32:
		return 1, 17, structure{10: structure{1: int8(32), 2: true}}
	case Int64:
		return 2, 18, structure{10: structure{1: int8(64), 2: true}}
	case Decimal:
		return 2, 5, structure{5: structure{1: int32(scale), 2: int32(precision)}}
	default: // Timestamp
		return 2, 10, structure{8: structure{1: true, 2: structure{2: structure{}}}}
	}
}

// append appends an integer in plain encoding.
func (t Type) append(to []byte, n int64) []byte {
	if t == Int32 {
		return binary.LittleEndian.AppendUint32(to, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(to, uint64(n))
}
