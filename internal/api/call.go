package api

import (
	"context"
	"hash"
	"net/http"
	"strconv"
	"time"

	"assay/internal/apikey"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
)

// jobID returns the id of the job in the path.
func (c *call) jobID() (int64, error) { return c.idOf("job") }

// idOf returns the id in the path. A malformed id is reported as not found, like an unknown
// one. The parameter what is the kind of the resource, such as "job".
func (c *call) idOf(what string) (int64, error) {
	text := c.values["id"]
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, fault.New(fault.NotFound, what+"_not_found", "There is no such %s.", what)
	}
	return id, nil
}

func (c *call) limit() int { return int(c.values.number("limit")) }

// keep returns how long the old secret of a rotation stays valid.
func (c *call) keep() time.Duration { return time.Duration(c.values.number("keepHours")) * time.Hour }

// fields returns the figures that the request selects for each price, and the members that an export
// selects.
func (c *call) fields() view.Fields {
	f, _ := view.ParseMembers(c.values["fields"]) // checked by bind
	return f
}

// currency returns the currency of the response's amounts; empty: the base currency.
func (c *call) currency() money.Currency { return money.Currency(c.values["currency"]) }

// allows reports whether the request's API key has a scope. Every other credential does.
func (c *call) allows(scope string) bool { return c.apiKey == nil || c.apiKey.Allows(scope) }

// eventForm returns the form of the events for the client.
func (c *call) eventForm() view.EventForm {
	return view.EventForm{Fields: c.fields(), Currency: c.currency(), Hidden: c.hiddenEvents()}
}

// hiddenEvents returns the events that the request's API key may not read. Without a scope for
// users, listings or wallets it must not learn about them from events.
func (c *call) hiddenEvents() view.HiddenEvents {
	return view.HiddenEvents{
		Inventory: !c.allows(apikey.InventoryRead), Market: !c.allows(apikey.MarketRead), Wallet: !c.allows(apikey.WalletRead),
	}
}

// key returns the key of the item in the request.
func (c *call) key() catalog.Key {
	return catalog.Key{AppID: int32(c.values.number("appId")), Name: c.values["name"], Phase: c.values["phase"]}
}

// call is a request in progress.
type call struct {
	*http.Request
	w       http.ResponseWriter
	ctx     context.Context //nolint:containedctx // a call is used by one request only
	slow    context.Context //nolint:containedctx // like ctx, but holds no admission slot; for calls that wait
	id      string          // request id
	route   string          // path pattern, for the log
	role    string          // role of the request; empty: none
	apiKey  *apikey.Key     // API key of the request; nil: another credential, or none
	hasBody bool
	quiet   bool // true if the request is logged at debug level only
	values  values

	onceKey string    // Idempotency-Key; empty: none
	money   bool      // true if the request moves money
	digest  hash.Hash // hash of the path, the query and the body read so far; nil without a key
}

// Context returns the context of the call. It holds an admission slot until the response
// begins. The http.Request is not replaced by a copy with this context, because net/http
// uses the original to track whether the body was read.
func (c *call) Context() context.Context { return c.ctx }
