package pricelist

import (
	"time"

	"assay/internal/money"
	"assay/internal/provider"
)

// Limits of what one configuration may hold.
const (
	maxLists        = 256
	maxMarkets      = 64 // of one list: one bit each in the set of what was seen
	maxAlternatives = 8  // paths of one amount
)

// list is one price list as configured, checked and ready to be read. It does
// not change.
type list struct {
	key, title  string
	appID       int32
	location    location
	headers     []header
	format      string
	compression string
	delimiter   byte
	columns     []string // of a CSV list without a header; nil: it has one

	root     path     // JSON: where the rows are
	tree     *node    // JSON: fields of a row
	inner    *node    // JSON: fields of an element of a row's array of quotes; nil: it has none
	fields   []string // all fields, as configured; cells are in this order
	elements []int    // the fields that are of elements
	name     int      // field of the name, or none: the key of the object
	phase    phaseRule
	where    []condition
	market   int // field that names the market, or none
	quotes   []quoteRule
	listTime timeRule // of the whole list

	minItems, maxItems int
	maxBytes           int64
}

// The formats of lists.
const (
	formatCSV    = "csv"
	formatArray  = "jsonArray"
	formatObject = "jsonObject"
	formatNDJSON = "ndjson"
)

// quoteRule defines how a row becomes a quote of one market. Fields are indices,
// none where not configured.
type quoteRule struct {
	market         provider.Market
	value          string // what the list's market field holds for it
	ask, bid, sale []int  // the first that holds an amount counts
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

// condition is what a field must be for a row to count.
type condition struct {
	field int
	value string
}

// timeRule defines the time of a whole list.
type timeRule struct {
	path     path // JSON: a member outside of the rows; nil: none
	format   string
	modified bool // when the file, or the response by its header, was last modified
}

// location is where a list is: a URL or a file.
type location struct {
	url   template // empty: a file
	host  string   // of the URL, with its port where that is named
	limit provider.Limit
	quota provider.Quota
	file  string
}

// header is one request header; its value may name secrets.
type header struct {
	name  string
	value template
}
