package strictjson

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/fault"
)

// Codes of the faults that a Reader finds by itself.
const (
	WrongType     = "wrong_type"
	OutOfRange    = "out_of_range" // a number, or the length of a string
	InvalidText   = "invalid_text"
	Required      = "required"
	UnknownMember = "unknown_member"
	TwiceMember   = "duplicate_member"
	Malformed     = "malformed"
)

// Fault notes that the value read last is wrong.
func (r *Reader) Fault(format string, args ...any) {
	r.FaultAt(r.Pointer(), format, args...)
}

// FaultAt notes that what pointer names is wrong.
func (r *Reader) FaultAt(pointer, format string, args ...any) {
	r.CodeAt(pointer, "", format, args...)
}

// CodeAt is FaultAt with a stable code for the fault.
func (r *Reader) CodeAt(pointer, code, format string, args ...any) {
	if r.err != nil {
		return
	}
	if len(r.fields) == r.most {
		r.more++
		return
	}
	r.fields = append(r.fields, fault.Field{Pointer: clip(pointer), Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (r *Reader) note(code, format string, args ...any) {
	r.CodeAt(r.Pointer(), code, format, args...)
}

// Require notes a fault unless the member of the object at pointer was there.
func (r *Reader) Require(pointer, name string, there bool) {
	if !there {
		r.CodeAt(pointer+"/"+name, Required, "is required")
	}
}

// Finish returns what is wrong with the input, nil if nothing is: a fault of
// kind Invalid, what was given to Stop, or the error of the underlying reader.
func (r *Reader) Finish() error {
	if r.err == nil {
		if _, err := r.dec.ReadToken(); err == nil {
			return r.malformed("there is something after the JSON value")
		} else if !errors.Is(err, io.EOF) {
			r.fail(err)
		}
	}
	if r.err != nil {
		return r.err
	}
	if len(r.fields) == 0 {
		return nil
	}
	f := fault.New(fault.Invalid, "invalid_body", "The body has %d faults; see errors.", len(r.fields))
	switch {
	case r.more > 0:
		f.Detail = fmt.Sprintf("The body has %d faults; errors lists %d of them and leaves out %d more.", len(r.fields)+r.more, len(r.fields), r.more)
	case len(r.fields) == 1:
		f.Detail = "The body has a fault; see errors."
	}
	f.Fields = r.fields
	return f
}

func (r *Reader) unknown(name string, known []string) {
	pointer := string(r.dec.StackPointer())
	detail := "is not known"
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
		detail = fmt.Sprintf("is not known: write %q", known[i])
	}
	r.CodeAt(pointer, UnknownMember, "%s", detail)
	r.Skip()
}

// fail turns an error of the decoder into one for the sender of the input, which
// names what was wrong before, too; errors of the underlying reader stay what they
// are.
func (r *Reader) fail(err error) {
	if r.err != nil {
		return
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.err = r.malformed("it ends too early")
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		r.err = r.invalid("a member is there twice", string(syntax.JSONPointer), TwiceMember, twice)
	case errors.As(err, &syntax):
		r.err = r.invalid(fmt.Sprintf("byte %d", syntax.ByteOffset), string(syntax.JSONPointer), Malformed, clip(reason(syntax)))
	default:
		r.err = err
	}
}

// twice is the detail of a duplicate member.
const twice = "is there twice"

// malformed is the fault of a body that is no JSON as a whole.
func (r *Reader) malformed(what string) *fault.Error { return r.invalid(what, "", Malformed, what) }

func (r *Reader) invalid(what, pointer, code, detail string) *fault.Error {
	f := fault.New(fault.Invalid, "invalid_json", "The body is not valid JSON: %s.", what)
	f.Fields = append(r.fields, fault.Field{Pointer: clip(pointer), Code: code, Detail: detail})
	return f
}

func reason(syntax *jsontext.SyntacticError) string {
	if syntax.Err == nil {
		return "is not valid JSON"
	}
	return strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
}

// describe names a kind of JSON value.
func describe(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// clip shortens text to maxEcho bytes, at a character's end.
func clip(text string) string {
	if len(text) <= maxEcho {
		return text
	}
	cut := maxEcho
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
