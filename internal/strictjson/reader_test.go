package strictjson

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"assay/internal/fault"
)

// thing is the result of read, which uses every type of value.
type thing struct {
	Name  string
	Count int64
	On    bool
	At    string
	Tags  []string
}

func read(in io.Reader) (thing, error) {
	var t thing
	r := NewReader(in)
	named := false
	r.Object([]string{"name", "count", "on", "at", "tags"}, func(member string) bool {
		switch member {
		case "name":
			named = true
			t.Name, _ = r.Text(1, 10)
		case "count":
			t.Count, _ = r.Int(1, 99)
		case "on":
			t.On, _ = r.Bool()
		case "at":
			if at, ok := r.Time(); ok {
				t.At = at.String()
			}
		case "tags":
			if !r.Null() {
				r.Array(func(int) {
					tag, _ := r.Text(0, 5)
					t.Tags = append(t.Tags, tag)
				})
			}
		default:
			return false
		}
		return true
	})
	r.Require("", "name", named)
	return t, r.Finish()
}

func TestReader_ReadsValidInput(t *testing.T) {
	got, err := read(strings.NewReader(` {"tags":["a","","★"], "name":"x\u0041", "count":42, "on":true, "at":"2026-01-31T13:00:00.1234567+01:00"} `))
	want := thing{Name: "xA", Count: 42, On: true, At: "2026-01-31 12:00:00.123456 +0000 UTC", Tags: []string{"a", "", "★"}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("read = %+v, %v; want %+v", got, err, want)
	}
	if got, err := read(strings.NewReader(`{"name":"x","tags":null}`)); err != nil || got.Tags != nil {
		t.Errorf("read with null tags = %+v, %v, want nil tags and no error", got, err)
	}
}

func TestReader_AcceptsZeroFractionsOfIntegers(t *testing.T) {
	for text, want := range map[string]int64{
		"42": 42, "42.0": 42, "42.000000": 42, "1.0": 1, "99.0": 99,
		"42.5": 0, "42.0000000000000000000000001": 0, "4.2e1": 0, "42.0e0": 0, "1e1": 0, "99.1": 0, "100.0": 0, "0.0": 0, "-42.0": 0,
		"18446744073709551658.0": 0,
	} {
		got, err := read(strings.NewReader(`{"name":"x","count":` + text + `}`))
		if got.Count != want || (err == nil) != (want != 0) {
			t.Errorf("%s: got count %d, error %v; want %d", text, got.Count, err, want)
		}
	}
}

func TestReader_ReportsEveryError(t *testing.T) {
	_, err := read(strings.NewReader(`{"Name":"x","count":"42","on":1,"at":1700000000,"tags":[7,{"a":[1]},"toolong","\u0000"],"other/~":{"deep":[{}]}}`))
	want := []fault.Field{
		{Pointer: "/Name", Code: "unknown_member", Detail: `is not known: write "name"`},
		{Pointer: "/count", Code: "wrong_type", Detail: "must be a number, without quotes"},
		{Pointer: "/on", Code: "wrong_type", Detail: "must be true or false, not a number"},
		{Pointer: "/at", Code: "wrong_type", Detail: `must be a time such as "2026-01-31T12:00:00Z": write "1700000000", not 1700000000`},
		{Pointer: "/tags/0", Code: "wrong_type", Detail: `must be a string: write "7", not 7`},
		{Pointer: "/tags/1", Code: "wrong_type", Detail: "must be a string, not an object"},
		{Pointer: "/tags/2", Code: "out_of_range", Detail: "must have at most 5 bytes, not 7"},
		{Pointer: "/tags/3", Code: "invalid_text", Detail: "must not contain a NUL byte"},
		{Pointer: "/other~1~0", Code: "unknown_member", Detail: "is not known"},
		{Pointer: "/name", Code: "required", Detail: "is required"},
	}
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Invalid || f.Code != "invalid_body" {
		t.Fatalf("read = %v, want an invalid_body fault", err)
	}
	if d := cmp.Diff(want, f.Fields); d != "" {
		t.Errorf("fields of the fault (-want +got):\n%s", d)
	}
}

func TestReader_LimitsTheListOfErrors(t *testing.T) {
	_, err := read(strings.NewReader(`{"name":"x","tags":[` + strings.Repeat("1,", 1000) + `1]}`))
	f := fault.Of(err)
	if f == nil || len(f.Fields) != 20 || f.Detail != "The body has 1001 faults; errors lists the first 20." {
		t.Errorf("read = %v, want 20 fields of 1001 faults", err)
	}
}

func TestReader_RefusesMalformedJSON(t *testing.T) {
	for name, c := range map[string]struct{ in, pointer string }{
		"empty input":       {"", ""},
		"truncated":         {`{"name":"x"`, ""},
		"duplicate member":  {`{"name":"x","name":"y"}`, "/name"},
		"escaped duplicate": {`{"name":"x","n\u0061me":"y"}`, "/name"},
		"nested duplicate":  {`{"name":"x","z":{"a":1,"a":2}}`, "/z/a"},
		"invalid UTF-8":     {"{\"name\":\"\xff\"}", "/name"},
		"lone surrogate":    {`{"name":"\ud800"}`, "/name"},
		"comment":           {`{"name":"x"/**/}`, ""},
		"single quotes":     {`{'name':'x'}`, ""},
		"trailing comma":    {`{"name":"x",}`, ""},
		"second value":      {`{"name":"x"}{}`, ""},
		"trailing bracket":  {`{"name":"x"}]`, ""},
		"NaN":               {`{"name":"x","count":NaN}`, "/count"},
		"leading zero":      {`{"name":"x","count":007}`, ""},
		"nested too deeply": {`{"name":"x","z":` + strings.Repeat("[", 20_000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(strings.NewReader(c.in))
			f := fault.Of(err)
			if f == nil || f.Kind != fault.Invalid || f.Code != "invalid_json" {
				t.Fatalf("read = %v, want an invalid_json fault", err)
			}
			if last := len(f.Fields) - 1; last < 0 || f.Fields[last].Pointer != c.pointer && c.pointer != "" {
				t.Errorf("got fields %v, want pointer %q in the last one", f.Fields, c.pointer)
			}
		})
	}
}

func TestReader_ReportsErrorsBeforeMalformedJSON(t *testing.T) {
	_, err := read(strings.NewReader(`{"count":-1,"Name":"x","on":`))
	want := []string{"/count", "/Name", ""}
	if f := fault.Of(err); f == nil || !slices.EqualFunc(f.Fields, want, func(f fault.Field, p string) bool { return f.Pointer == p }) {
		t.Errorf("read = %+v, want pointers %q", f, want)
	}
}

func TestDocumentReader_ContinuesAfterADuplicateMember(t *testing.T) {
	r := NewDocumentReader(strings.NewReader(`{"a":{"b":1,"\u0062":2,"b":[{}]},"a":{},"c":9}`), 3)
	var member func(string) bool
	member = func(name string) bool {
		if name == "a" {
			r.Object(nil, member)
		} else {
			r.Int(0, 3)
		}
		return true
	}
	r.Object(nil, member)
	f := fault.Of(r.Finish())
	want := []string{"/a/b duplicate_member", "/a/b duplicate_member", "/a duplicate_member"}
	if f == nil || !slices.EqualFunc(f.Fields, want, func(f fault.Field, w string) bool { return f.Pointer+" "+f.Code == w }) || f.Detail != "The body has 4 faults; errors lists the first 3." {
		t.Errorf("got fault %+v, want %q of 4 faults", f, want)
	}
}

func TestReader_RefusesInvalidIntegers(t *testing.T) {
	for _, n := range []string{"1.5", "1e1", "0", "-1", "100", "99999999999999999999", "null", "true", "[]"} {
		if _, err := read(strings.NewReader(`{"name":"x","count":` + n + `}`)); fault.Of(err) == nil {
			t.Errorf("count %s: got error %v, want a fault", n, err)
		}
	}
}

func TestReader_ReportsBothBoundsOfAnInteger(t *testing.T) {
	r := NewReader(strings.NewReader(`9223372036854775808`))
	r.Int(0, math.MaxInt64)
	const want = "must be a whole number from 0 to 9223372036854775807"
	if f := fault.Of(r.Finish()); f == nil || f.Fields[0].Detail != want {
		t.Errorf("got fault %+v, want %q", f, want)
	}
}

func TestReader_ReturnsErrorsOfTheUnderlyingReader(t *testing.T) {
	broken := errors.New("read error")
	_, err := read(io.MultiReader(strings.NewReader(`{"name":`), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("read = %v, want %v in its chain", err, broken)
	}
}

// counted counts the bytes that are read from it.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestReader_RefusesAHugeValue(t *testing.T) {
	for name, head := range map[string]string{
		"known member":   `{"name":"`,
		"unknown member": `{"other":"`,
		"nested value":   `{"other":[{"a":1},"`,
		"member name":    `{"`,
		"number":         `{"count":1`,
	} {
		in := &counted{Reader: strings.NewReader(head + strings.Repeat("1", 30<<20))}
		_, err := read(in)
		if f := fault.Of(err); f == nil || f.Kind != fault.TooLarge || f.Code != "value_too_large" {
			t.Errorf("%s: got error %v, want value_too_large", name, err)
		}
		if in.n > 4*maxValue {
			t.Errorf("%s: got %d bytes read, want at most %d", name, in.n, 4*maxValue)
		}
	}
}

func TestReader_AcceptsManyValues(t *testing.T) {
	tag := `"` + strings.Repeat(`\u0041`, 5) + `"`
	in := `{"name":"x","tags":[` + strings.Repeat(tag+",", 200_000) + tag + `],"other":"` + strings.Repeat("x", maxValue-100) + `"}`
	_, err := read(strings.NewReader(in))
	if f := fault.Of(err); f == nil || len(f.Fields) != 1 || f.Fields[0].Pointer != "/other" {
		t.Errorf("got error %v, want only a fault at /other", err)
	}
}

func TestReader_DoesNotRepeatLongInput(t *testing.T) {
	long := strings.Repeat("★", 100_000)
	for _, in := range []string{
		fmt.Sprintf(`{"name":"x",%q:1}`, long),
		fmt.Sprintf(`{"name":"x",%q:1,%q:1}`, long, long),
		fmt.Sprintf(`{"name":"x","z":{%q:NaN}}`, long),
		`{"name":` + strings.Repeat("1", 100_000) + `}`,
	} {
		if _, err := read(strings.NewReader(in)); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.40s: got an error of %d bytes, want at most 1000", in, len(fmt.Sprint(err)))
		}
	}
}
