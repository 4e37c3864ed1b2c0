// Package provider defines what a price provider is and sends all requests to
// providers. A Provider decodes responses into quotes. Its Client applies limits, retries,
// the circuit breaker and the address guard, and records the requests.
package provider

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/money"
)

// Shape is how many items one request to a provider covers.
type Shape string

// The shapes.
const (
	Bulk   Shape = "bulk"   // a call returns every item of a file
	Batch  Shape = "batch"  // a call names up to BatchSize items
	Single Shape = "single" // a call names one item
)

// Description describes a provider. It is constant for the life of the Provider.
type Description struct {
	Name      string        // its key in configuration and URLs: "sim"
	Title     string        // for people: "Market simulator"
	Shape     Shape         // how many items a request covers
	BatchSize int           // Batch: most names a call takes; Single: 1; Bulk: 0
	Markets   []Market      // every market that it offers
	Files     []File        // Bulk: its files; a refresh fetches each of them once
	Hosts     []Host        // that it queries; none: one host, without a limit
	Interval  time.Duration // an earlier request gets the same response
	Terms     string        // a note on the provider's terms of use, for operators
}

// Market is one marketplace as quoted by a provider.
type Market struct {
	Key         string        // unique across the provider, lower case: "skinport"
	Title       string        // for people
	AppIDs      []int32       // games that it quotes
	SalesWindow time.Duration // longest window for which it counts sales; 0: it does not
	MaxAge      time.Duration // quotes fetched longer ago are stale; 0: the default
	// Currencies are those in which it quotes, as far as that is known beforehand.
	Currencies []money.Currency
	Pool       string // markets that resell the same listings name the same pool; "": its own
}

// File is one thing that a Bulk provider serves whole.
type File struct {
	Key     string   // unique within the provider: "a.json"
	AppID   int32    // the game whose items it holds
	Markets []string // keys of the markets that it quotes
	Host    string   // key of the host that serves it
	Local   bool     // it is on this machine: reading it takes no request and no host
	// Requests is how many requests fetching it takes; 0 means one.
	Requests int
}

// Host is a host that a provider queries. Each host has its own Client and workers, so
// that a host that fails or demands a wait does not delay the others. A Batch or Single
// provider has one host.
type Host struct {
	Key     string  // unique within the provider, the same after a restart; may be "" where there is one
	Limit   Limit   // what may be queried of it
	Others  int     // requests beyond Limit that it allows and that other users of its budget need
	Quota   Quota   // and what in days and months
	Headers Headers // which of them the rate headers of its responses speak of, where it sends any
}

// HostAt returns the host of a key. One that is not listed has no limit.
func (d *Description) HostAt(key string) Host {
	for _, h := range d.Hosts {
		if h.Key == key {
			return h
		}
	}
	return Host{Key: key}
}

// HostOf returns the key of the host that serves a file, or, with no file, that
// is queried by name.
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

// FileOf returns the file that a call requests. One that the provider does not have
// is an error of KindProtocol.
func (d *Description) FileOf(call Call) (*File, error) {
	for i := range d.Files {
		if f := &d.Files[i]; f.Key == call.File && f.AppID == call.AppID {
			return f, nil
		}
	}
	return nil, Protocol(d.Name, "there is no file %q of app %d", call.File, call.AppID)
}

// MarketsOf returns the keys of the markets of a file, or for "" of all that the
// provider offers; none for a file that it does not have.
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

// Call is one thing to fetch: a file of a Bulk provider, or names of a game.
type Call struct {
	AppID int32
	File  string   // Bulk: the key of the file
	Names []string // Batch, Single: distinct market hash names, at most BatchSize
	Meter *Meter   // counts what the call costs; pass it on in each Request
}

// Meter counts what calls cost. The zero value is ready. Its methods may be used
// concurrently.
type Meter struct {
	requests, bytes atomic.Int64

	mu       sync.Mutex
	reserved int64
	reserve  Reserve
	sending  func()
}

// Reserve stores further requests before they are sent. It returns how many may be sent
// before the next call, at least one, or an error if none may.
type Reserve func(ctx context.Context) (more int64, err error)

// NewMeter returns a Meter whose first requests are stored already. Every request is
// stored before it is sent, so that a crash loses no count.
func NewMeter(noted int64, reserve Reserve) *Meter {
	return &Meter{reserved: noted, reserve: reserve}
}

// OnRequest has fn called for each request that is about to be sent. Call it before the
// Meter is used.
func (m *Meter) OnRequest(fn func()) { m.sending = fn }

// Request counts one request that is about to be sent. After an error it must
// not be sent.
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

// AddBytes counts bytes of a response before inflating.
func (m *Meter) AddBytes(n int64) {
	if m != nil {
		m.bytes.Add(n)
	}
}

// Requests returns how many HTTP requests were sent, retries included.
func (m *Meter) Requests() int64 { return m.requests.Load() }

// Bytes returns how many bytes of responses were received, before inflating.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

// Unknown marks a count that the market did not state. It is not zero: no
// statement about sales is not a statement of no sales.
const Unknown = -1

// Quote is one market's quote of one item. Amounts are in micro-units of Currency; 0 is
// "none", and no amount is ever negative. A Quote without Ask and Sale means that the
// market knows the item and does not offer it.
type Quote struct {
	Market      string // key of one of the provider's markets
	Name        string // market hash name, byte for byte as the provider has it
	Phase       string // one of catalog.Phases, or empty
	Currency    money.Currency
	Ask         money.Micro   // lowest ask
	Bid         money.Micro   // highest bid
	Sale        money.Micro   // median or last sale
	Listings    int64         // items offered, or Unknown
	Sales       int64         // sales within SalesWindow, or Unknown
	SalesWindow time.Duration // what Sales covers; 0 when Sales is Unknown
	MarketTime  time.Time     // the market's own time of the quote; zero: not stated
}

// Sink takes what a provider decodes. It is used by one goroutine at a time.
type Sink interface {
	// Restart forgets everything taken so far. A provider calls it at the start
	// of every attempt to read a response, so that a retried response counts once.
	Restart()
	// Quote takes one quote. The sink copies what it keeps, so q may be reused. It
	// also finds the quotes that name an item and market again; see Duplicates.
	// After an error, which refuses the response (for example too many items),
	// the provider stops and returns it.
	Quote(q *Quote) error
	// Reject counts a row that is no quote: an amount that is no number, a name
	// that cannot be one. Of an item that has the name, it is no evidence that the
	// market does not offer it; "" stands for all markets of the response. The reason is a
	// constant in lower case.
	Reject(market, name, reason string)
}

// Result is what a fetch returns beside its quotes.
type Result struct {
	ProviderTime time.Time // the provider's own time of the data; zero: not stated
	// Silent lists markets that the response should have held and did not.
	Silent []string
}

// Provider is one price provider. Its methods may be called concurrently.
type Provider interface {
	Describe() Description
	// Fetch sends what the call requests, decodes the response as a stream into
	// sink and returns when all of it is read. After an error nothing in the
	// sink counts. Errors from the transport are *Error; a response that is not
	// what the provider promises is an *Error of KindProtocol. It returns soon
	// after ctx ends.
	Fetch(ctx context.Context, call Call, sink Sink) (Result, error)
}

// Prober is a Provider with a cheap call that shows whether it works: its smallest file,
// or names that it surely has. For another Provider, a probe fetches the first file or
// one name.
type Prober interface {
	Provider
	// Probe returns that call, without a Meter. It must send no more than one
	// request when it is fetched.
	Probe() Call
}
