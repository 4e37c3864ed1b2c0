package api

import (
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/wallet"
)

// keyRule states whether a route uses the header Idempotency-Key.
type keyRule int

const (
	noKey keyRule = iota // the header is ignored
	keyOptional
	keyRequired
)

const (
	keyHeader   = "Idempotency-Key"
	keyReplayed = "Idempotency-Replayed"
)

// takeKey checks the Idempotency-Key of a request. If there is one, it wraps the body to
// hash it while it is read.
func (c *call) takeKey(op *operation) error {
	if op.body == nil || op.body.key == noKey {
		return nil
	}
	given := c.Header.Values(keyHeader)
	switch {
	case len(given) == 0 && op.body.key == keyOptional:
		return nil
	case len(given) == 0:
		return fault.New(fault.Invalid, "idempotency_key_required",
			"This route requires an Idempotency-Key header: a unique value per operation. Reuse it when you retry.")
	case len(given) > 1 || !isKey(given[0]):
		return fault.New(fault.Invalid, "invalid_idempotency_key", "Send one Idempotency-Key header of 1 to %d printable ASCII characters.", idempotency.MaxKey)
	}
	c.onceKey, c.money, c.digest = given[0], op.body.money, sha256.New()
	for _, part := range []string{c.URL.EscapedPath(), c.URL.RawQuery} {
		_, _ = io.WriteString(c.digest, strconv.Itoa(len(part))+" "+part) // a hash never returns an error
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

// once executes requests with an Idempotency-Key exactly once.
type once struct {
	*Deps
	mu   sync.Mutex
	open map[idempotency.Key]idempotency.Digest // requests in progress in this process
}

func newOnce(d *Deps) *once { return &once{Deps: d, open: map[idempotency.Key]idempotency.Digest{}} }

// seal encodes the response to a transaction. If the request has a key, seal stores the
// response in the same transaction. It must be the last step of the transaction, and it is
// called again when the transaction is retried.
type seal func(tx *db.Tx, status int, location string, value any) error

// do executes work, or returns the response that is stored under the key of the request.
// The body of the request must have been read. The parameter user is the id of the user
// that the request concerns.
func (o *once) do(c *call, user string, work func(seal) error) (any, error) {
	r, replayed, err := o.respond(c, user, work)
	if err != nil {
		return nil, err
	}
	return response{status: r.Status, location: r.Location, contentType: r.ContentType, body: r.Body, replayed: replayed}, nil
}

// respond returns the response of do. It returns an error only for failures that are not
// stored under the key.
func (o *once) respond(c *call, user string, work func(seal) error) (a idempotency.Response, replayed bool, err error) {
	var made idempotency.Response
	render := func(_ *db.Tx, status int, location string, value any) error {
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
	if stored, err := o.stored(c, k, request); stored != nil || err != nil {
		return valueOf(stored), true, err
	}
	err = work(func(tx *db.Tx, status int, location string, value any) error {
		if err := render(tx, status, location, value); err != nil {
			return err
		}
		made.Request = request
		return o.Responses.Store(tx, k, made)
	})
	if err == nil {
		return made, false, nil
	}
	return o.storeRefusal(c, k, request, err)
}

// storeRefusal stores a refusal if a retry would get the same one. If a response is already
// stored under the key, storeRefusal returns that response. Another instance may have stored
// it. This instance may also have stored it in a commit whose result it did not receive.
func (o *once) storeRefusal(c *call, k idempotency.Key, request idempotency.Digest, refusal error) (a idempotency.Response, replayed bool, err error) {
	p, _, _ := explain(refusal)
	final := slices.Contains([]int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}, p.Status)
	if k.Money && (final || errors.Is(refusal, idempotency.ErrKeyUsed)) {
		if stored, err := o.moved(c, k, request); stored != nil || err != nil {
			return valueOf(stored), true, err
		}
	}
	err = refusal
	if final {
		a = idempotency.Response{ // expires, because the request changed nothing
			Request: request, Status: p.Status, ContentType: problemType, Body: c.problem(p), Expires: o.Now().Add(idempotency.Retention),
		}
		if err = o.Responses.DB.InTx(c.Context(), func(tx *db.Tx) error { return o.Responses.Store(tx, k, a) }); err == nil {
			return a, false, nil
		}
	}
	if stored, again := o.stored(c, k, request); stored != nil || (again != nil && errors.Is(err, idempotency.ErrKeyUsed)) {
		return valueOf(stored), true, again
	}
	return idempotency.Response{}, false, err
}

// moved returns the stored response if the ledger has a transaction under the key. It
// returns nil if there is no transaction. Every ledger transaction stores its response, so
// moved returns an error if there is a transaction but no response.
func (o *once) moved(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	id, err := wallet.PostedUnder(c.Context(), o.Responses.DB, k.Scope(), k.Key)
	if err != nil || id == 0 {
		return nil, err
	}
	stored, err := o.stored(c, k, request)
	if stored == nil && err == nil {
		err = fault.New(fault.Conflict, "response_lost",
			"The first request with this Idempotency-Key succeeded, but its stored response is lost. This request changed nothing. "+
				"Find the result as transaction %d in the wallet's entries and, for a purchase, in the buyer's trades.", id)
	}
	return stored, err
}

// stored returns the stored response to a request, or nil. It returns an error if the key
// was used for another request.
func (o *once) stored(c *call, k idempotency.Key, request idempotency.Digest) (*idempotency.Response, error) {
	stored, err := o.Responses.Find(c.Context(), k)
	if err == nil && stored != nil && stored.Request != request {
		return nil, keyReused()
	}
	return stored, err
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

// enter marks a request as in progress until leave is called. It returns an error if
// another request with the same key is in progress in this process.
func (o *once) enter(k idempotency.Key, request idempotency.Digest) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch first, there := o.open[k]; {
	case there && first != request:
		return nil, keyReused()
	case there:
		return nil, &refusal{
			status: http.StatusConflict, code: "request_in_progress",
			detail: "The first request with this Idempotency-Key is still in progress. Retry later to get its response.",
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
