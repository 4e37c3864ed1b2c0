package api

import (
	"context"
	"hash"
	"net/http"
	"strconv"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/view"
)

// jobID returns the job that the path names. What no job can be called is not
// found, as any other that does not exist.
func (c *call) jobID() (int64, error) { return c.idOf("job") }

// idOf returns the id in the path. What is no id is one of nothing.
func (c *call) idOf(what string) (int64, error) {
	text := c.values["id"]
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, fault.New(fault.NotFound, what+"_not_found", "There is no such %s.", what)
	}
	return id, nil
}

func (c *call) limit() int { return int(c.values.number("limit")) }

// fields returns the figures that are requested beside each price.
func (c *call) fields() view.Fields {
	f, _ := view.ParseFields(c.values["fields"]) // was checked
	return f
}

// key returns the item that the request names.
func (c *call) key() catalog.Key {
	return catalog.Key{AppID: int32(c.values.number("appId")), Name: c.values["name"], Phase: c.values["phase"]}
}

// call is a request in progress.
type call struct {
	*http.Request
	w       http.ResponseWriter
	ctx     context.Context //nolint:containedctx // a call lives as long as its request
	id      string          // of the request
	route   string          // pattern of the path, for the log
	role    string          // that it acts in; empty: none
	hasBody bool
	quiet   bool // it is not logged: a wrong secret of many
	values  values

	onceKey string    // Idempotency-Key; empty: none
	money   bool      // the response is about money
	digest  hash.Hash // of the path, the query and the body so far; nil without a key
}

// Context is that of the request. It holds the slot of its reads until the response begins.
// net/http sees by its own request whether the body was read, so that is not copied.
func (c *call) Context() context.Context { return c.ctx }
