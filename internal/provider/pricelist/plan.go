package pricelist

import (
	"time"

	"assay/internal/money"
	"assay/internal/provider"
)

// Limits of a configuration.
const (
	maxLists        = 256
	maxMarkets      = 64 // per list: one bit each in the set of quoted markets
	maxAlternatives = 8  // paths per amount
)

// list is one valid price list of the configuration. It never changes.
type list struct {
	key, title  string
	appID       int32
	location    location
	headers     []header
	format      string
	compression string
	delimiter   byte
	columns     []string // of a CSV list without a header; nil: it has a header

	root     path     // JSON: path of the rows
	tree     *node    // JSON: fields of a row
	inner    *node    // JSON: fields of an element of a row's array of quotes; nil: no array
	fields   []string // all fields, as configured; cells are in this order
	elements []int    // indices of the fields of elements
	name     int      // field of the name; none: the key of the object
	phase    phaseRule
	where    []condition
	market   int // field of the market, or none
	quotes   []quoteRule
	listTime timeRule // of the whole list

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

// quoteRule defines how a row becomes a quote of one market. Fields are indices; none if
// not configured.
type quoteRule struct {
	market         provider.Market
	value          string // value of the list's market field for this market
	ask, bid, sale []int  // the first field with an amount counts
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

// phaseFields are the prices of one phase within a row of the plain item.
type phaseFields struct {
	phase          string
	ask, bid, sale int
}

// phaseRule defines where a row's phase is.
type phaseRule struct {
	field  int  // or none
	suffix bool // "Name - Ruby"
	infix  bool // "Knife | Doppler Ruby (Factory New)"
}

// condition is the required value of a field.
type condition struct {
	field int
	value string
}

// timeRule defines the time of a whole list.
type timeRule struct {
	path     path // JSON: a member outside of the rows; nil: none
	format   string
	modified bool // use the modification time of the file, or the Last-Modified header
}

// location is the location of a list: a URL or a file.
type location struct {
	url   template // empty: a file
	host  string   // of the URL, with the port if it has one
	limit provider.Limit
	quota provider.Quota
	file  string
}

// header is one request header; its value may name secrets.
type header struct {
	name  string
	value template
}
