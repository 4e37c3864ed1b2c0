package parquet

import "encoding/binary"

// structure is a structure of Thrift. The index of a value is the id of its field, and nil is a
// field that is absent. Values are bool, int8, int32, int64, string, structure, encoded and list.
type structure []any

// encoded is a structure that is already encoded.
type encoded []byte

// list is a list of Thrift. Its elements have the same type, which is not bool. An empty list is one
// of structures.
type list []any

// appendThrift appends a value in the compact protocol of Thrift
// (doc/specs/thrift-compact-protocol.md in github.com/apache/thrift). Integers are zigzag varints. A
// structure has before each value the difference to the previous id and the type of the value, and
// ends with 0. A bool is part of its type.
func appendThrift(to []byte, v any) []byte {
	switch v := v.(type) {
	case int8:
		return append(to, byte(v))
	case int32:
		return binary.AppendVarint(to, int64(v))
	case int64:
		return binary.AppendVarint(to, v)
	case string:
		return append(binary.AppendUvarint(to, uint64(len(v))), v...)
	case encoded:
		return append(to, v...)
	case list:
		kind := thriftType(structure{})
		if len(v) > 0 {
			kind = thriftType(v[0])
		}
		if len(v) < 15 {
			to = append(to, byte(len(v))<<4|kind)
		} else {
			to = binary.AppendUvarint(append(to, 15<<4|kind), uint64(len(v)))
		}
		for _, element := range v {
			to = appendThrift(to, element)
		}
	case structure:
		last := 0
		for id, value := range v {
			if value != nil {
				to = appendThrift(append(to, byte(id-last)<<4|thriftType(value)), value)
				last = id
			}
		}
		return append(to, 0)
	}
	return to
}

func thriftType(v any) byte {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 2
	case int8:
		return 3
	case int32:
		return 5
	case int64:
		return 6
	case string:
		return 8
	case list:
		return 9
	default:
		return 12 // structure
	}
}
