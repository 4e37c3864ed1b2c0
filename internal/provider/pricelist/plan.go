package pricelist

import (
	"time"

	"assay/internal/money"
	"assay/internal/provider"
)

// Limits of a configuration.
const (
	maxLists        = 256
	maxMarkets      = 64 // per list, because the set of quoted markets has 64 bits
	maxAlternatives = 8  // paths per amount
)

// list is one compiled price list of the configuration. It is immutable.
type list struct {
	key, title  string
	appID       int32
	location    location
	headers     []header
	format      string
	compression string
	delimiter   byte
	columns     []string // for CSV without a header; nil if the list has a header

	root     path     // for JSON: path of the rows
	tree     *node    // for JSON: fields of a row
	inner    *node    // for JSON: fields of an element of a row's array of quotes; nil if none
	fields   []string // all fields as configured, in the order of the cells
	elements []int    // indices of the fields of elements
	name     int      // field of the name; none if the name is the key in an object
	phase    phaseRule
	where    []condition
	market   int // field of the market, or none
	quotes   []quoteRule
	listTime timeRule

	minItems, maxItems int
	maxBytes           int64
}

// Formats of lists.
const (
	formatCSV    = "csv"
	formatArray  = "jsonArray"
	formatObject = "jsonObject"
	formatNDJSON = "ndjson"
)

// quoteRule defines the quote of one market in a row. It refers to fields by index; none
// means that a field is not configured.
type quoteRule struct {
	market         provider.Market
	value          string // value of the list's market field for this market
	ask, bid, sale []int  // alternatives: the first field with an amount is used
	listings       int
	sales          int
	salesWindow    time.Duration
	time           int
	timeFormat     string
	currency       money.Currency
	currencyField  int
	unit           int64
	phases         []phaseFields
}

// phaseFields holds the fields with the prices of one phase. They are in the row of the
// item without a phase.
type phaseFields struct {
	phase          string
	ask, bid, sale int
}

// phaseRule defines the location of a row's phase.
type phaseRule struct {
	field  int  // index of a field, or none
	suffix bool // "Name - Ruby"
	infix  bool // "Knife | Doppler Ruby (Factory New)"
}

// condition requires a field to have a value.
type condition struct {
	field int
	value string
}

// timeRule defines the time of a whole list.
type timeRule struct {
	path     path // for JSON: path of a member outside of the rows, or nil
	format   string
	modified bool // whether to use the file's modification time or the Last-Modified header
}

// location is the location of a list: a URL or a file.
type location struct {
	url   template // empty for a file
	host  string   // host of the URL, with the port if it has one
	limit provider.Limit
	quota provider.Quota
	file  string // path of the file; empty for a URL
}

// header is a request header. Its value may contain secrets.
type header struct {
	name  string
	value template
}
