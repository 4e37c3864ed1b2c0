// Package provider defines price providers and sends all requests to them. A Provider
// decodes responses into quotes. A Client applies limits, retries, the circuit breaker and
// the address guard, and records the requests.
package provider

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/money"
)

// Shape is the number of items that one request covers.
type Shape string

// The shapes.
const (
	Bulk   Shape = "bulk"   // a call returns all items of a file
	Batch  Shape = "batch"  // a call names up to BatchSize items
	Single Shape = "single" // a call names one item
)

// Description describes a provider. It never changes.
type Description struct {
	Name      string        // its key in configuration and URLs: "sim"
	Title     string        // for people: "Market simulator"
	Shape     Shape         // how many items a request covers
	BatchSize int           // Batch: maximum names per call; Single: 1; Bulk: 0
	Markets   []Market      // all markets that it offers
	Files     []File        // Bulk: its files; a refresh fetches each once
	Hosts     []Host        // hosts that it queries; none: one host without a limit
	Interval  time.Duration // how long the provider caches a response; earlier requests get the same one
	Terms     string        // the provider's terms of use, for operators
}

// Market is a marketplace as one provider quotes it.
type Market struct {
	Key         string        // unique within the provider, lower case: "skinport"
	Title       string        // for people
	AppIDs      []int32       // games that it quotes
	SalesWindow time.Duration // longest window for which it counts sales; 0: none
	MaxAge      time.Duration // age after which quotes are stale; 0: the default
	// Currencies lists the known currencies of its quotes.
	Currencies []money.Currency
	Pool       string // markets that resell the same listings have the same pool; "": its own
}

// File is one price list that a Bulk provider serves as a whole.
type File struct {
	Key     string   // unique within the provider: "a.json"
	AppID   int32    // the game of its items
	Markets []string // keys of its markets
	Host    string   // key of the host that serves it
	Local   bool     // a file on this machine: no request and no host
	// Requests is how many requests one fetch takes; 0 means one.
	Requests int
}

// Host is a host that a provider queries. Each host has its own Client and host queue, so
// that one that fails or demands a wait does not delay the others. A Batch or Single
// provider has one host.
type Host struct {
	Key     string  // unique within the provider and stable across restarts; may be "" for a single host
	Limit   Limit   // requests that it allows
	Others  int     // requests beyond Limit that the other users of its budget need
	Quota   Quota   // requests per day and month
	Headers Headers // which budget its rate headers describe
}

// HostAt returns the host with a key. An unlisted host has no limit.
func (d *Description) HostAt(key string) Host {
	for _, h := range d.Hosts {
		if h.Key == key {
			return h
		}
	}
	return Host{Key: key}
}

// HostOf returns the key of the host that serves a file, or with "" of the host that is
// queried by name.
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

// FileOf returns the file that a call names. An unknown file is an error of KindProtocol.
func (d *Description) FileOf(call Call) (*File, error) {
	for i := range d.Files {
		if f := &d.Files[i]; f.Key == call.File && f.AppID == call.AppID {
			return f, nil
		}
	}
	return nil, Protocol(d.Name, "unknown file %q of app %d", call.File, call.AppID)
}

// MarketsOf returns the market keys of a file, or with "" of the whole provider. It returns
// none for an unknown file.
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

// Call is one unit to fetch: a file of a Bulk provider, or names of a game.
type Call struct {
	AppID int32
	File  string   // Bulk: the key of the file
	Names []string // Batch, Single: distinct market hash names, at most BatchSize
	Meter *Meter   // counts requests and bytes; pass it on in each Request
}

// Meter counts requests and bytes. The zero value is ready. Its methods may be used
// concurrently.
type Meter struct {
	requests, bytes atomic.Int64

	mu       sync.Mutex
	reserved int64
	reserve  Reserve
	sending  func()
}

// Reserve stores further requests before they are sent. It returns how many may be sent
// before the next call (at least one), or an error if none may be sent.
type Reserve func(ctx context.Context) (more int64, err error)

// NewMeter returns a Meter with noted requests already stored. Every request is stored
// before it is sent, so that a crash loses no count.
func NewMeter(noted int64, reserve Reserve) *Meter {
	return &Meter{reserved: noted, reserve: reserve}
}

// OnRequest sets a function that is called before each request is sent. Call it before the
// Meter is used.
func (m *Meter) OnRequest(fn func()) { m.sending = fn }

// Request counts one request that is about to be sent. After an error, do not send it.
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

// AddBytes adds bytes of a response, before inflating.
func (m *Meter) AddBytes(n int64) {
	if m != nil {
		m.bytes.Add(n)
	}
}

// Requests returns how many HTTP requests were sent, with retries.
func (m *Meter) Requests() int64 { return m.requests.Load() }

// Bytes returns how many bytes of responses were received, before inflating.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Unknown marks a count that the market did not state. It is not zero: a missing count of
// sales is not a count of 0.
const Unknown = -1

// Quote is one market's quote of one item. Amounts are in micro-units of Currency and never
// negative; 0 means none. A Quote without Ask and Sale means that the market knows the item
// but has no offer.
type Quote struct {
	Market      string // key of one of the provider's markets
	Name        string // market hash name, byte for byte as in the response
	Phase       string // one of catalog.Phases, or empty
	Currency    money.Currency
	Ask         money.Micro   // lowest ask
	Bid         money.Micro   // highest bid
	Sale        money.Micro   // median or last sale
	Listings    int64         // items offered, or Unknown
	Sales       int64         // sales within SalesWindow, or Unknown
	SalesWindow time.Duration // the window of Sales; 0 when Sales is Unknown
	MarketTime  time.Time     // the market's own time of the quote; zero: not stated
}

// Sink receives decoded quotes. One goroutine at a time uses it.
type Sink interface {
	// Restart discards all quotes. A provider calls it before each attempt to read a
	// response, so that a retried response counts once.
	Restart()
	// Quote takes one quote and copies what it keeps, so the caller may reuse q. The sink
	// also finds repeated quotes; see Duplicates. An error rejects the whole response (for
	// example, too many items): the provider stops and returns it.
	Quote(q *Quote) error
	// Reject counts an invalid row: a malformed amount or name. A rejected row is no
	// evidence that the market does not offer the item. market "" stands for all markets of
	// the response; name "" for an unknown item. The reason is a constant in lower case.
	Reject(market, name, reason string)
}

// Result is what a fetch returns besides its quotes.
type Result struct {
	ProviderTime time.Time // the provider's own time of the data; zero: not stated
	// Silent lists markets that are missing from the response.
	Silent []string
}

// Provider is one price provider. Its methods may be called concurrently.
type Provider interface {
	Describe() Description
	// Fetch sends the call's request, streams the decoded response into sink and returns
	// when all of it is read. After an error, the quotes in the sink do not count.
	// Transport errors are *Error; a response that breaks the provider's format is an
	// *Error of KindProtocol. It returns soon after ctx ends.
	Fetch(ctx context.Context, call Call, sink Sink) (Result, error)
}

// Prober is a Provider with a cheap call that shows whether it works: its smallest file, or
// names that it certainly has. For other providers, a probe fetches the first file or one
// name.
type Prober interface {
	Provider
	// Probe returns that call, without a Meter. Fetching it must send at most one request.
	Probe() Call
}
