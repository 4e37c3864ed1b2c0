package pricelist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/fault"
	"assay/internal/provider/feed"
)

// faults collects all faults of a configuration, so that the operator can fix them
// together.
type faults struct {
	fields []fault.Field
}

// maxFaults is the maximum number of reported faults.
const maxFaults = 100

func (f *faults) add(pointer, format string, args ...any) {
	field := fault.Field{Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
	if len(f.fields) < maxFaults && !slices.Contains(f.fields, field) {
		f.fields = append(f.fields, field)
	}
}

// err returns nil if there are no faults.
func (f *faults) err() error {
	if len(f.fields) == 0 {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid, Code: "invalid_price_lists",
		Detail: "the configuration of price lists is invalid", Fields: f.fields,
	}
}

// object reads the members of a JSON object one by one. A member of the wrong type is a
// fault and is treated as missing. The method done adds faults for unknown members.
type object struct {
	at        string // JSON pointer of the object
	names     []string
	members   map[string]jsontext.Value
	inherited map[string]string // by name of an inherited member: its JSON pointer in the base object
	used      map[string]bool
	faults    *faults
}

// newObject parses value, which must be valid JSON without duplicate names.
func newObject(at string, value jsontext.Value, f *faults) *object {
	o := &object{
		at: at, members: map[string]jsontext.Value{}, inherited: map[string]string{},
		used: map[string]bool{}, faults: f,
	}
	if value.Kind() != '{' {
		f.add(at, "must be an object")
		return o
	}
	for c := feed.NewCursor(value); ; {
		name, member, ok := c.Member()
		if !ok {
			return o
		}
		text := string(feed.Unquote(name))
		o.names = append(o.names, text)
		o.members[text] = jsontext.Value(member)
	}
}

// overlay adds the members of base that are missing in o.
func (o *object) overlay(base *object) {
	for _, name := range base.names {
		if _, ok := o.members[name]; !ok {
			o.members[name] = base.members[name]
			o.inherited[name] = base.pointer(name)
			o.names = append(o.names, name)
		}
	}
}

// pointer returns the JSON pointer of a member.
func (o *object) pointer(name string) string {
	if p, ok := o.inherited[name]; ok {
		return p
	}
	return o.at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (o *object) fault(name, format string, args ...any) {
	o.faults.add(o.pointer(name), format, args...)
}

// has reports whether the member exists. It does not mark the member as used.
func (o *object) has(name string) bool { _, ok := o.members[name]; return ok }

// take returns a member and marks it as used.
func (o *object) take(name string) (jsontext.Value, bool) {
	v, ok := o.members[name]
	o.used[name] = true
	return v, ok
}

// done adds a fault for each member that was not used.
func (o *object) done() {
	for _, name := range o.names {
		if !o.used[name] {
			o.fault(name, "unknown member")
		}
	}
}

// text takes a non-empty string. It returns "" if the member is missing.
func (o *object) text(name string) string {
	v, ok := o.take(name)
	if !ok {
		return ""
	}
	if v.Kind() != '"' || len(v) == 2 {
		o.fault(name, "must be a non-empty string")
		return ""
	}
	return string(feed.Unquote(v))
}

// required is like text, but adds a fault if the member is missing.
func (o *object) required(name string) string {
	if !o.has(name) {
		o.used[name] = true
		o.fault(name, "is missing")
		return ""
	}
	return o.text(name)
}

// texts takes a string or an array of strings.
func (o *object) texts(name string) []string {
	v, ok := o.take(name)
	if !ok {
		return nil
	}
	if v.Kind() != '[' {
		if t := o.text(name); t != "" {
			return []string{t}
		}
		return nil
	}
	var all []string
	for c := feed.NewCursor(v); ; {
		item, ok := c.Element()
		if !ok {
			break
		}
		if item[0] != '"' || len(item) == 2 {
			o.fault(name, "must contain non-empty strings")
			return nil
		}
		all = append(all, string(feed.Unquote(item)))
	}
	if len(all) == 0 || len(all) > maxAlternatives {
		o.fault(name, "must contain 1 to %d strings", maxAlternatives)
		return nil
	}
	return all
}

// integer takes a whole number from low to high. It returns def if the member is missing
// or invalid.
func (o *object) integer(name string, low, high, def int64) int64 {
	v, ok := o.take(name)
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < low || n > high {
		o.fault(name, "must be a whole number from %d to %d", low, high)
		return def
	}
	return n
}

// boolean takes true or false. It returns false if the member is missing.
func (o *object) boolean(name string) bool {
	v, ok := o.take(name)
	if ok && v.Kind() != 't' && v.Kind() != 'f' {
		o.fault(name, "must be true or false")
	}
	return ok && v.Kind() == 't'
}

// duration takes a positive Go duration such as "90m". It returns def if the member is
// missing or invalid.
func (o *object) duration(name string, def time.Duration) time.Duration {
	v, ok := o.take(name)
	if !ok {
		return def
	}
	var d time.Duration
	var err error
	if v.Kind() == '"' {
		d, err = time.ParseDuration(string(feed.Unquote(v)))
	}
	if err != nil || d <= 0 {
		o.fault(name, "must be a positive duration such as \"5m\" or \"720h\"")
		return def
	}
	return d
}

// choice takes one of the options. The first option is the default. If it is empty, the
// member is required.
func (o *object) choice(name string, options ...string) string {
	if !o.has(name) && options[0] == "" {
		return o.required(name)
	}
	if !o.has(name) {
		o.used[name] = true
		return options[0]
	}
	got := o.text(name)
	for _, option := range options {
		if got == option && got != "" {
			return got
		}
	}
	o.fault(name, "must be one of %s", quoteAll(options))
	return options[0]
}

// object takes an object. It returns nil if the member is missing.
func (o *object) object(name string) *object {
	v, ok := o.take(name)
	if !ok {
		return nil
	}
	return newObject(o.pointer(name), v, o.faults)
}

// objects takes an array of 1 to limit objects. It returns nil if the member is missing.
func (o *object) objects(name string, limit int) []*object {
	v, ok := o.take(name)
	if !ok {
		return nil
	}
	if v.Kind() != '[' {
		o.fault(name, "must be an array of objects")
		return nil
	}
	var all []*object
	for c := feed.NewCursor(v); ; {
		item, ok := c.Element()
		if !ok {
			break
		}
		if len(all) == limit {
			o.fault(name, "must contain at most %d objects", limit)
			break
		}
		all = append(all, newObject(o.pointer(name)+"/"+strconv.Itoa(len(all)), item, o.faults))
	}
	if len(all) == 0 {
		o.fault(name, "must not be empty")
	}
	return all
}

// quoteAll formats texts as a list of the form "a", "b".
func quoteAll(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(t))
	}
	return b.String()
}

// maxShown is the maximum number of names in an error message.
const maxShown = 20

// quoteSome is like quoteAll for untrusted texts. It limits their number and length.
func quoteSome(texts []string) string {
	if len(texts) == 0 {
		return "nothing"
	}
	shown := make([]string, 0, maxShown)
	for _, t := range texts[:min(len(texts), maxShown)] {
		shown = append(shown, feed.Clip([]byte(t)))
	}
	s := quoteAll(shown)
	if len(texts) > maxShown {
		s += ", …"
	}
	return s
}
