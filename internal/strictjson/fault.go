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

// Codes of the errors that a Reader reports.
const (
	WrongType       = "wrong_type"
	OutOfRange      = "out_of_range" // a number, or the length of a string
	InvalidText     = "invalid_text"
	Required        = "required"
	UnknownMember   = "unknown_member"
	DuplicateMember = "duplicate_member"
	Malformed       = "malformed"
)

// Fault records an error in the last value read.
func (r *Reader) Fault(format string, args ...any) {
	r.FaultAt(r.Pointer(), format, args...)
}

// FaultAt records an error in the value at pointer.
func (r *Reader) FaultAt(pointer, format string, args ...any) {
	r.CodeAt(pointer, "", format, args...)
}

// CodeAt records an error in the value at pointer, with a stable code.
func (r *Reader) CodeAt(pointer, code, format string, args ...any) {
	if r.err != nil {
		return
	}
	if len(r.fields) == r.maxFields {
		r.more++
		return
	}
	r.fields = append(r.fields, fault.Field{Pointer: clip(pointer), Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (r *Reader) note(code, format string, args ...any) {
	r.CodeAt(r.Pointer(), code, format, args...)
}

// Require records an error if a required member of the object at pointer is missing.
func (r *Reader) Require(pointer, name string, there bool) {
	if !there {
		r.CodeAt(pointer+"/"+name, Required, "is required")
	}
}

// Finish returns nil if the input is valid. Otherwise it returns a fault of kind Invalid,
// the error passed to Stop, or the error of the underlying reader.
func (r *Reader) Finish() error {
	if r.err == nil {
		if _, err := r.dec.ReadToken(); err == nil {
			return r.malformed("unexpected data after the JSON value")
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
		f.Detail = fmt.Sprintf("The body has %d faults; errors lists the first %d.", len(r.fields)+r.more, len(r.fields))
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

// fail stores an error of the decoder. A syntax error becomes a fault that also lists the
// errors found before. Errors of the underlying reader are stored unchanged.
func (r *Reader) fail(err error) {
	if r.err != nil {
		return
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		r.err = r.malformed("unexpected end of input")
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		r.err = r.invalid("duplicate member", string(syntax.JSONPointer), DuplicateMember, duplicateDetail)
	case errors.As(err, &syntax):
		r.err = r.invalid(fmt.Sprintf("byte %d", syntax.ByteOffset), string(syntax.JSONPointer), Malformed, clip(reason(syntax)))
	default:
		r.err = err
	}
}

// duplicateDetail is the detail of the error for a duplicate member.
const duplicateDetail = "is a duplicate member"

// malformed returns the fault for input that is not valid JSON.
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

// describe returns the name of a JSON type with its article.
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

// clip truncates text to at most maxEcho bytes at a character boundary.
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
