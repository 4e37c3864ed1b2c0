// Package provider defines price providers and sends all requests to them. A Provider decodes
// responses into quotes. A Client sends the requests and records them. The Client applies rate
// limits, retries, a circuit breaker and an address guard.
package provider

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/money"
)

// Shape states how a provider's requests select items.
type Shape string

// The shapes.
const (
	Bulk   Shape = "bulk"   // a request returns all items of a file
	Batch  Shape = "batch"  // a request names up to BatchSize items
	Single Shape = "single" // a request names one item
)

// Description describes a provider. It never changes.
type Description struct {
	Name      string        // key in configuration and URLs: "sim"
	Title     string        // display name: "Market simulator"
	Shape     Shape         // how requests select items
	BatchSize int           // maximum names per request: 1 for Single, 0 for Bulk
	Markets   []Market      // all markets that the provider carries
	Files     []File        // files of a Bulk provider; a refresh fetches each once
	Hosts     []Host        // hosts of the provider; empty: one host without a limit
	Interval  time.Duration // how long the provider caches a response; earlier requests get the same response
	Terms     string        // terms of use, for operators
}

// Market is a marketplace whose quotes one provider carries.
type Market struct {
	Key         string        // unique within the provider, lower case: "skinport"
	Title       string        // display name
	AppIDs      []int32       // games with quotes
	SalesWindow time.Duration // longest period of its sales counts; 0: no sales counts
	MaxAge      time.Duration // age after which quotes are stale; 0: the default
	// Currencies lists the known currencies of the quotes.
	Currencies []money.Currency
	Pool       string // markets with the same value resell the same listings; "": none
}

// File is one price list of a Bulk provider.
type File struct {
	Key     string   // unique within the provider: "a.json"
	AppID   int32    // the game of its items
	Markets []string // keys of the markets in the file
	Host    string   // key of the host that serves it
	Local   bool     // read from the local disk, without requests or a host
	// Requests is the number of requests per fetch; 0 means one.
	Requests int
}

// Host is one API host of a provider. Each host has a separate Client and host queue, so a
// slow or failing host does not delay the others. A Batch or Single provider has one host.
type Host struct {
	Key      string  // unique within the provider and stable across restarts; may be "" for a single host
	Limit    Limit   // rate limit
	Reserved int     // requests per period beyond Limit, reserved for other users of the same budget
	Quota    Quota   // requests per day and month
	Headers  Headers // budget that the rate-limit headers describe
}

// HostAt returns the host with the given key. For an unlisted key it returns a host without a
// limit.
func (d *Description) HostAt(key string) Host {
	for _, h := range d.Hosts {
		if h.Key == key {
			return h
		}
	}
	return Host{Key: key}
}

// HostOf returns the key of the host that serves a file. For file "", it returns the host for
// requests by item name.
func (d *Description) HostOf(file string) string {
	for i := range d.Files {
		if d.Files[i].Key == file {
			return d.Files[i].Host
		}
	}
	if len(d.Hosts) > 0 {
		return d.Hosts[0].Key
	}
	return ""
}

// FileOf returns the file of a call. For an unknown file it returns an error of KindProtocol.
func (d *Description) FileOf(call Call) (*File, error) {
	for i := range d.Files {
		if f := &d.Files[i]; f.Key == call.File && f.AppID == call.AppID {
			return f, nil
		}
	}
	return nil, Protocol(d.Name, "unknown file %q for app %d", call.File, call.AppID)
}

// MarketsOf returns the market keys of a file, or of the whole provider for file "". For an
// unknown file it returns nil.
func (d *Description) MarketsOf(file string) []string {
	var keys []string
	if file == "" {
		for i := range d.Markets {
			keys = append(keys, d.Markets[i].Key)
		}
	}
	for i := range d.Files {
		if d.Files[i].Key == file {
			keys = d.Files[i].Markets
		}
	}
	return keys
}

// Call is one unit to fetch: either a file of a Bulk provider or a list of item names.
type Call struct {
	AppID int32
	File  string   // key of the file, for Bulk
	Names []string // distinct market hash names, at most BatchSize, for Batch and Single
	Meter *Meter   // counts requests and bytes; set it in each Request
}

// Meter counts requests and bytes. The zero value is ready to use. Its methods may be called
// concurrently.
type Meter struct {
	requests, bytes atomic.Int64

	mu       sync.Mutex
	reserved int64
	reserve  Reserve
	sending  func()
}

// Reserve stores a number of requests before they are sent. It returns that number, at least
// one. It returns an error if no request may be sent.
type Reserve func(ctx context.Context) (more int64, err error)

// NewMeter returns a Meter that stores every request before it is sent, so a crash loses no
// count. The parameter stored is the number of requests that are stored already. When they are
// used up, the Meter calls reserve for more.
func NewMeter(stored int64, reserve Reserve) *Meter {
	return &Meter{reserved: stored, reserve: reserve}
}

// OnRequest sets a function to call before each request. Set it before the first request.
func (m *Meter) OnRequest(fn func()) { m.sending = fn }

// Request counts one request that is about to be sent. If it returns an error, do not send the
// request.
func (m *Meter) Request(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if m.reserve != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.requests.Load() >= m.reserved {
			more, err := m.reserve(ctx)
			if err != nil {
				return err
			}
			m.reserved += more
		}
	}
	m.requests.Add(1)
	if m.sending != nil {
		m.sending()
	}
	return nil
}

// AddBytes adds the size of a response before decompression.
func (m *Meter) AddBytes(n int64) {
	if m != nil {
		m.bytes.Add(n)
	}
}

// Requests returns the number of HTTP requests sent, including retries.
func (m *Meter) Requests() int64 { return m.requests.Load() }

// Bytes returns the size of all responses before decompression.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Unknown is the value of a count that the market does not report. A missing sales count
// differs from a sales count of 0.
const Unknown = -1

// Quote is one market's quote of one item. Amounts are in micro-units of Currency and never
// negative; 0 means none. A Quote without Ask and Sale means that the market lists the item
// but has no offers.
type Quote struct {
	Market      string // market key, unique within the provider
	Name        string // market hash name, exactly as in the response
	Phase       string // one of catalog.Phases, or empty
	Currency    money.Currency
	Ask         money.Micro   // lowest ask
	Bid         money.Micro   // highest bid
	Sale        money.Micro   // median or last sale
	Listings    int64         // number of offers, or Unknown
	Sales       int64         // number of sales within SalesWindow, or Unknown
	SalesWindow time.Duration // period of Sales; 0 when Sales is Unknown
	MarketTime  time.Time     // time of the quote as the market reports it; zero: not reported
}

// Sink receives decoded quotes. It need not be safe for concurrent use.
type Sink interface {
	// Restart discards all quotes. A provider calls it each time before it reads a response,
	// so a retry does not add quotes twice.
	Restart()
	// Quote adds one quote. It copies the data that it keeps, so the caller may reuse q. It
	// also detects repeated quotes; see Duplicates. An error (for example, too many items)
	// rejects the whole response. The provider then stops and returns that error.
	Quote(q *Quote) error
	// Reject counts an invalid row, for example with a malformed amount or name. A rejected
	// row is no evidence that the market lacks the item. Use market "" for all markets of the
	// response and name "" for an unknown item. The reason is a constant in lower case.
	Reject(market, name, reason string)
}

// Result holds the data of a fetch except its quotes.
type Result struct {
	ProviderTime time.Time // time of the data as the provider reports it; zero: not reported
	// Silent lists markets that are missing from the response.
	Silent []string
}

// Provider is one price provider. Its methods may be called concurrently.
type Provider interface {
	Describe() Description
	// Fetch sends the request of the call and streams the decoded response into sink. It
	// returns after the whole response is read, or soon after ctx ends. If it returns an
	// error, discard the quotes in the sink. A transport error is an *Error. A response that
	// breaks the provider's format is an *Error of KindProtocol.
	Fetch(ctx context.Context, call Call, sink Sink) (Result, error)
}

// Prober is a Provider with a cheap call that shows whether it works: its smallest file, or
// names that it always has. For other providers, a probe fetches the first file or one name.
type Prober interface {
	Provider
	// Probe returns the cheap call, without a Meter. Its fetch must send at most one request.
	Probe() Call
}
