package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"assay/internal/fault"
	"assay/internal/idempotency"
)

// Responses stores the responses to requests with an Idempotency-Key.
type Responses interface {
	// StoredResponse returns the response to a request, or nil. The error reports a
	// response that was altered in the database.
	StoredResponse(ctx context.Context, k idempotency.Key) (*idempotency.Response, error)
	// StoreResponse stores the response to a request that changed nothing. The error is
	// idempotency.ErrKeyUsed if one is stored.
	StoreResponse(ctx context.Context, k idempotency.Key, r idempotency.Response) error
	// PostedUnder returns the transaction of the ledger that was posted under a key;
	// 0: there is none.
	PostedUnder(ctx context.Context, scope, key string) (id int64, err error)
}

// keyRule is whether a route takes an Idempotency-Key. Other routes ignore the header.
type keyRule int

const (
	noKey keyRule = iota
	keyTaken
	keyRequired
)

const (
	keyHeader   = "Idempotency-Key"
	keyReplayed = "Idempotency-Replayed"
)

// takeKey checks a request's Idempotency-Key. What is read of a body that has one
// is digested on its way.
func (c *call) takeKey(op *operation) error {
	if op.body == nil || op.body.key == noKey {
		return nil
	}
	given := c.Header.Values(keyHeader)
	switch {
	case len(given) == 0 && op.body.key == keyTaken:
		return nil
	case len(given) == 0:
		return fault.New(fault.Invalid, "idempotency_key_required",
			"This route requires an Idempotency-Key header: a unique value per operation. Reuse it when you retry.")
	case len(given) > 1 || !isKey(given[0]):
		return fault.New(fault.Invalid, "invalid_idempotency_key", "Send one Idempotency-Key header of 1 to %d printable ASCII characters.", idempotency.MaxKey)
	}
	c.onceKey, c.money, c.digest = given[0], op.body.money, sha256.New()
	for _, part := range []string{c.URL.EscapedPath(), c.URL.RawQuery} {
		_, _ = io.WriteString(c.digest, strconv.Itoa(len(part))+" "+part) // a hash takes everything
	}
	c.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(c.Body, c.digest), c.Body}
	return nil
}

func isKey(text string) bool {
	unprintable := func(b byte) bool { return b < ' ' || b > '~' }
	return text != "" && len(text) <= idempotency.MaxKey && !slices.ContainsFunc([]byte(text), unprintable)
}

// once carries out requests with an Idempotency-Key exactly once.
type once struct {
	*Deps
	mu   sync.Mutex
	open map[idempotency.Key]idempotency.Digest // requests in progress in this process
}

func newOnce(d *Deps) *once { return &once{Deps: d, open: map[idempotency.Key]idempotency.Digest{}} }

// seal encodes the response to what a transaction did. If the request has a key, the
// response is stored in the same transaction. It is called last, and again when the
// transaction is retried.
type seal func(tx idempotency.ResponseStore, status int, location string, value any) error

// do does the work of a request whose body has been read, or returns the response that
// is stored under its key. user is the user that the request is about.
func (o *once) do(c *call, user string, work func(seal) error) (any, error) {
	r, replayed, err := o.respond(c, user, work)
	if err != nil {
		return nil, err
	}
	return response{status: r.Status, location: r.Location, contentType: r.ContentType, body: r.Body, replayed: replayed}, nil
}

// respond returns the response of do. Its error is never of a kind that is stored.
func (o *once) respond(c *call, user string, work func(seal) error) (a idempotency.Response, replayed bool, err error) {
	var made idempotency.Response
	render := func(_ idempotency.ResponseStore, status int, location string, value any) error {
		body, err := json.Marshal(value, encoding())
		made = idempotency.Response{Status: status, ContentType: jsonType, Location: location, Body: body}
		if !c.money {
			made.Expires = o.Now().Add(idempotency.Retention)
		}
		return err
	}
	if c.onceKey == "" {
		err := work(render)
		return made, false, err
	}
	k := idempotency.Key{Route: c.Method + " " + c.route, Role: c.role, User: user, Key: c.onceKey, Money: c.money}
	request := idempotency.Digest(c.digest.Sum(nil))
	leave, err := o.enter(k, request)
	if err != nil {
		return a, false, err
	}
	defer leave()
	if kept, err := o.stored(c, k, request); kept != nil || err != nil {
		return valueOf(kept), true, err
	}
	err = work(func(tx idempotency.ResponseStore, status int, location string, value any) error {
		if err := render(tx, status, location, value); err != nil {
			return err
		}
		made.Request = request
		return tx.StoreResponse(k, made)
	})
	if err == nil {
		return made, false, nil
	}
	return o.storeRefusal(c, k, request, err)
}

// storeRefusal stores that the work was refused, if the refusal holds for a retry as
// well. Another instance may have stored a response meanwhile, or this one, if the
// outcome of its commit is unknown: that response is returned.
func (o *once) storeRefusal(c *call, k idempotency.Key, request idempotency.Digest, refusal error) (a idempotency.Response, replayed bool, err error) {
	p, _, _ := explain(refusal)
	final := slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}, p.Status)
	if k.Money && (final || errors.Is(refusal, idempotency.ErrKeyUsed)) {
		if kept, err := o.moved(c, k, request); kept != nil || err != nil {
			return valueOf(kept), true, err
		}
	}
	err = refusal
	if final {
		a = idempotency.Response{ // it expires, because nothing was done
			Request: request, Status: p.Status, ContentType: problemType, Body: c.problem(p), Expires: o.Now().Add(idempotency.Retention),
		}
		if err = o.Responses.StoreResponse(c.Context(), k, a); err == nil {
			return a, false, nil
		}
	}
	if kept, again := o.stored(c, k, request); kept != nil || (again != nil && errors.Is(err, idempotency.ErrKeyUsed)) {
		return valueOf(kept), true, again
	}
	return idempotency.Response{}, false, err
}

// moved returns the response to a request that moved money, or nil if none did. The
// error reports a lost response. The ledger is read first: a response was stored with
// each of its transactions.
func (o *once) moved(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	id, err := o.Responses.PostedUnder(c.Context(), k.Scope(), k.Key)
	if err != nil || id == 0 {
		return nil, err
	}
	kept, err := o.stored(c, k, request)
	if kept == nil && err == nil {
		err = fault.New(fault.Conflict, "answer_lost",
			"The request of this Idempotency-Key succeeded, but its stored response is lost. Nothing was done again. "+
				"Find its result as transaction %d in the wallet's entries, and, for a purchase, in the buyer's trades.", id)
	}
	return kept, err
}

// stored returns the stored response to a request, or nil. The error reports a key that
// was used for another request.
func (o *once) stored(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	kept, err := o.Responses.StoredResponse(c.Context(), k)
	if err == nil && kept != nil && kept.Request != request {
		return nil, keyReused()
	}
	return kept, err
}

func valueOf(a *idempotency.Response) idempotency.Response {
	if a == nil {
		return idempotency.Response{}
	}
	return *a
}

func keyReused() error {
	return fault.New(fault.Unprocessable, "idempotency_key_reused",
		"This Idempotency-Key was used for another request. Use a unique value per operation.")
}

// enter notes that a request is in progress until leave is called. It refuses a second
// request with the same key meanwhile.
func (o *once) enter(k idempotency.Key, request idempotency.Digest) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch first, there := o.open[k]; {
	case there && first != request:
		return nil, keyReused()
	case there:
		return nil, &refusal{
			status: http.StatusConflict, code: "request_in_progress",
			detail: "The first request with this Idempotency-Key is still in progress. Retry to get its response.",
			header: http.Header{"Retry-After": {"1"}},
		}
	}
	o.open[k] = request
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, k)
	}, nil
}
