package pricelist

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/money"
	"assay/internal/provider/feed"
)

const (
	defaultMaxItems = 250_000
	defaultMaxBytes = 256 << 20
	itemsLimit      = 2_000_000
	bytesLimit      = 4 << 30
)

var (
	listKey   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	marketKey = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
)

// compiler compiles the configuration of one list.
type compiler struct {
	*list
	o    *object
	base marketBase
	csv  map[string]int // for CSV: index of the field by column name
}

// marketBase holds the default settings for the markets of a list.
type marketBase struct {
	quote         *object // nil if not configured
	currency      money.Currency
	currencyField int
	unit          int64
}

// readList compiles a list. It adds faults to o. The returned list is valid only if there
// are no faults.
func readList(o *object, env Env) *list {
	if name := o.text("preset"); name != "" {
		if doc, ok := Preset(name); ok {
			o.overlay(newObject(o.at, jsontext.Value(doc), o.faults))
		} else {
			o.fault("preset", "unknown preset: use one of %s", quoteAll(PresetNames()))
		}
	}
	c := &compiler{list: &list{}, o: o, csv: map[string]int{}}
	c.readKey()
	c.readFormat()
	c.readLocation(env)
	c.readLimit()
	c.readQuota()
	c.readRows()
	c.readTime()
	c.readBase()
	for _, m := range o.objects("markets", maxMarkets) {
		c.readMarket(m)
	}
	if !o.has("markets") {
		o.fault("markets", "is missing")
	}
	o.done()
	return c.list
}

func (c *compiler) readKey() {
	c.key = c.o.required("key")
	if c.key != "" && !listKey.MatchString(c.key) {
		c.o.fault("key", "must be 1 to 64 letters, digits, dots, dashes and underscores")
	}
	if c.title = c.o.text("title"); c.title == "" {
		c.title = c.key
	}
	if !c.o.has("appId") {
		c.o.fault("appId", "is missing")
	}
	c.appID = int32(c.o.integer("appId", 1, 1<<31-1, 0))
	c.minItems = int(c.o.integer("minItems", 1, itemsLimit, 1))
	c.maxItems = int(c.o.integer("maxItems", 1, itemsLimit, defaultMaxItems))
	if c.minItems > c.maxItems {
		c.o.fault("minItems", "must not exceed \"maxItems\"")
	}
	c.maxBytes = c.o.integer("maxBytes", 1, bytesLimit, defaultMaxBytes)
}

func (c *compiler) readFormat() {
	c.format = c.o.choice("format", "", formatCSV, formatArray, formatObject, formatNDJSON)
	c.compression = c.o.choice("compression", compressionAuto, compressionNone, compressionGzip, compressionZstd)
	c.delimiter = ','
	c.tree = newNode()
	if c.format != formatCSV {
		c.only("delimiter", formatCSV)
		c.only("columns", formatCSV)
		return
	}
	if d := c.o.text("delimiter"); d != "" {
		if len(d) != 1 || strings.ContainsAny(d, "\"\r\n") || d[0] >= 0x80 {
			c.o.fault("delimiter", "must be one ASCII character other than a quote or a line break")
		}
		c.delimiter = d[0]
	}
	if columns, ok := c.o.take("columns"); ok {
		c.readColumns(columns)
	}
}

func (c *compiler) readColumns(value jsontext.Value) {
	if value.Kind() != '[' {
		c.o.fault("columns", "must be an array of column names")
		return
	}
	for cur := feed.NewCursor(value); ; {
		item, ok := cur.Element()
		if !ok {
			return
		}
		if item[0] != '"' {
			c.o.fault("columns", "must contain strings")
			return
		}
		c.columns = append(c.columns, string(feed.Unquote(item)))
	}
}

// only adds a fault if the member exists and the list has another format.
func (c *compiler) only(name string, formats ...string) {
	if _, ok := c.o.take(name); ok && c.format != "" {
		c.o.fault(name, "is supported only for format %s", strings.Join(formats, ", "))
	}
}

// readRows reads where the rows are and which fields identify an item.
func (c *compiler) readRows() {
	o := c.o
	c.name, c.phase.field, c.market = none, none, none
	switch c.format {
	case formatArray, formatObject:
		c.root = c.path(o, "root")
	default:
		c.only("root", formatArray, formatObject)
	}
	if c.format == formatCSV {
		c.only("each", formatArray, formatObject, formatNDJSON)
	} else if p := c.path(o, "each"); p != nil {
		c.tree.reach(p).each = true
		c.inner = newNode()
	}
	if o.has("name") || c.format != formatObject {
		if text := o.required("name"); text != "" {
			c.name = c.outerField(o, "name", text)
		}
	}
	c.readPhase()
	if text := o.text("market"); text != "" {
		c.market = c.field(o, "market", text)
	}
	if where := o.object("where"); where != nil {
		for _, name := range where.names {
			if value := where.text(name); value != "" {
				c.where = append(c.where, condition{field: c.outerField(where, name, name), value: value})
			}
		}
	}
}

func (c *compiler) readPhase() {
	p := c.o.object("phase")
	if p == nil {
		return
	}
	if text := p.text("field"); text != "" {
		c.phase.field = c.outerField(p, "field", text)
	}
	if p.has("name") {
		where := p.choice("name", "suffix", "infix", "both")
		c.phase.suffix, c.phase.infix = where != "infix", where != "suffix"
	}
	if p.has("field") == p.has("name") {
		p.faults.add(p.at, "must contain either \"field\" or \"name\"")
	}
	p.done()
}

// readTime reads the settings for the time of the whole list.
func (c *compiler) readTime() {
	t := c.o.object("time")
	if t == nil {
		return
	}
	c.listTime.modified = t.boolean("modified")
	c.listTime.format = c.timeFormat(t)
	if t.has("field") == c.listTime.modified {
		t.faults.add(t.at, "must contain either \"field\" or \"modified\": true")
	}
	if c.format != formatArray && c.format != formatObject && t.has("field") {
		t.fault("field", "is supported only for format %s, %s: set the time of a row in \"quote\"", formatArray, formatObject)
	}
	p := c.path(t, "field")
	if p != nil && (p.within(c.root) || c.root.within(p)) {
		t.fault("field", "must be outside of \"root\": set the time of a row in \"quote\"")
	}
	c.listTime.path = p
	t.done()
}

// timeFormat reads a time format. The default is feed.TimeAuto.
func (c *compiler) timeFormat(o *object) string {
	format := o.text("format")
	switch format {
	case "":
		return feed.TimeAuto
	case feed.TimeAuto, feed.TimeUnix, feed.TimeUnixMs, feed.TimeRFC3339, feed.TimeDate:
	default:
		if !strings.Contains(format, "2006") {
			o.fault("format", "must be one of %s, or a Go time layout such as \"2006-01-02 15:04\"",
				quoteAll([]string{feed.TimeAuto, feed.TimeUnix, feed.TimeUnixMs, feed.TimeRFC3339, feed.TimeDate}))
		}
	}
	return format
}

func (c *compiler) readBase() {
	c.base.currencyField = none
	if c.base.quote = c.o.object("quote"); c.base.quote != nil {
		for _, name := range c.base.quote.names {
			if !slices.Contains(quoteMembers(), name) {
				c.base.quote.fault(name, "unknown member")
			}
		}
	}
	c.base.unit = c.unit(c.o, 1)
	c.base.currency, c.base.currencyField = c.currency(c.o)
}

// unit reads the number of units per unit of currency, such as 100 for cents.
func (c *compiler) unit(o *object, def int64) int64 {
	unit := o.integer("unit", 1, money.Scale, def)
	if money.CheckUnit(unit) != nil {
		o.fault("unit", "must be a power of ten up to %d: 1 for whole units, 100 for cents, 1000 for mills", money.Scale)
		return def
	}
	return unit
}

// currency reads the currency. It returns either a code or the index of a field that
// contains the code.
func (c *compiler) currency(o *object) (money.Currency, int) {
	if v, ok := o.members["currency"]; ok && v.Kind() == '{' {
		in := o.object("currency")
		field := none
		if text := in.required("field"); text != "" {
			field = c.field(in, "field", text)
		}
		in.done()
		return "", field
	}
	text := o.text("currency")
	if text == "" {
		return "", none
	}
	code, err := money.ParseCurrency(text)
	if err != nil {
		o.fault("currency", "must be three upper-case letters, such as \"USD\", or {\"field\": ...}")
	}
	return code, none
}

// path reads a path into a JSON document. It returns nil if the member is missing or
// invalid.
func (c *compiler) path(o *object, name string) path {
	text := o.text(name)
	if text == "" {
		return nil
	}
	p, err := parsePath(text)
	if err != nil {
		o.fault(name, "%s", err)
	}
	return p
}

// field returns the index of the field at the path text. If the list has "each", the path
// starts at the element. With the prefix "^" it starts at the row.
func (c *compiler) field(o *object, name, text string) int {
	if c.inner == nil {
		return c.outerField(o, name, text)
	}
	if outer, ok := strings.CutPrefix(text, "^"); ok {
		return c.outerField(o, name, outer)
	}
	before := len(c.fields)
	i := c.jsonField(o, name, text, c.inner)
	if len(c.fields) > before {
		c.elements = append(c.elements, i)
	}
	return i
}

// outerField returns the index of the field at the path text, which starts at the row.
func (c *compiler) outerField(o *object, name, text string) int {
	if c.format != formatCSV {
		return c.jsonField(o, name, text, c.tree)
	}
	i, ok := c.csv[text]
	if !ok {
		i = c.addField(text)
		c.csv[text] = i
	}
	return i
}

func (c *compiler) jsonField(o *object, name, text string, tree *node) int {
	p, err := parsePath(text)
	if err != nil {
		o.fault(name, "%s", err)
		return none
	}
	n := tree.reach(p)
	if n.field == none {
		n.field = c.addField(text)
	}
	return n.field
}

func (c *compiler) addField(text string) int {
	c.fields = append(c.fields, text)
	return len(c.fields) - 1
}
