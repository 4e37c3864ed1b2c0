package sim

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// decoder steps through one JSON document. Malformed text, invalid UTF-8 and
// members given twice are errors of it.
type decoder struct {
	dec     *jsontext.Decoder
	scratch []byte
}

// errKind is a value of another type than is wanted.
var errKind = errors.New("a value of the wrong type")

// object reads an object. It calls member with the name of each member, quoted
// and valid until the next read; member reads the value.
func (d *decoder) object(member func(name []byte) error) error {
	if err := d.open('{'); err != nil {
		return err
	}
	for d.dec.PeekKind() != '}' {
		name, err := d.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// array reads an array whose elements are all of one kind. It calls element
// before each; element reads it.
func (d *decoder) array(kind jsontext.Kind, element func() error) error {
	if err := d.open('['); err != nil {
		return err
	}
	for {
		switch d.dec.PeekKind() {
		case ']':
			_, err := d.dec.ReadToken()
			return err
		case kind:
			if err := element(); err != nil {
				return err
			}
		default:
			return d.unwanted()
		}
	}
}

// open reads the beginning of an object or array.
func (d *decoder) open(kind jsontext.Kind) error {
	if d.dec.PeekKind() != kind {
		return d.unwanted()
	}
	_, err := d.dec.ReadToken()
	return err
}

// unwanted says why the next value is not what is wanted: it cannot be read, or
// is of another type.
func (d *decoder) unwanted() error {
	at := d.dec.StackPointer()
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	return fmt.Errorf("%w in %q", errKind, at)
}

// end fails if anything follows.
func (d *decoder) end() error {
	switch _, err := d.dec.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("more than one document")
	default:
		return err
	}
}

// text reads a string.
func (d *decoder) text() (string, error) {
	raw, err := d.scalar('"')
	return string(d.unquote(raw)), err
}

// integer reads a whole number.
func (d *decoder) integer() (int64, error) {
	raw, err := d.scalar('0')
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w in %q: no whole number", errKind, d.dec.StackPointer())
	}
	return n, nil
}

// scalar reads a value of one kind. It is valid until the next read.
func (d *decoder) scalar(kind jsontext.Kind) ([]byte, error) {
	if d.dec.PeekKind() != kind {
		return nil, d.unwanted()
	}
	return d.dec.ReadValue()
}

// unquote returns what a JSON string stands for; it is valid until the next
// call or read.
func (d *decoder) unquote(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	inner := raw[1 : len(raw)-1]
	if slices.Contains(inner, '\\') {
		// The decoder has checked the string, so that this cannot fail.
		d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], raw)
		return d.scratch
	}
	return inner
}
